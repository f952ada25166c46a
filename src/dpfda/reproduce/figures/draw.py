"""The figure of every experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dpfda.reproduce.figures import sweeps
from dpfda.reproduce.figures.dense import draw_dense
from dpfda.reproduce.figures.readings import draw_readings
from dpfda.reproduce.figures.real_data import draw_real_data
from dpfda.reproduce.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[str, Callable[[Results], Figure]] = {
    "mean-1": sweeps.draw_mean,
    "mean-2": sweeps.draw_mean,
    "dense": draw_dense,
    "heat": sweeps.draw_heat,
    "visits": sweeps.draw_visits,
    "sensitivity": sweeps.draw_sensitivity,
    "federated": sweeps.draw_federated,
    "covariates": sweeps.draw_covariates,
    "real-data": draw_real_data,
    "readings": draw_readings,
}


def draw_experiment(results: Results) -> Figure:
    """The figure of one experiment."""
    figure = FIGURES[results.experiment.name](results)
    figure.suptitle(f"{results.experiment.title}. {results.experiment.source}", fontsize=11)
    return figure
