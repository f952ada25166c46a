"""Configurations to work: every TOML file in `configs/` is one experiment, a list of cells with their coordinates."""

from __future__ import annotations

import dataclasses
import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from dpfda import _validate
from dpfda.curves import datasets
from dpfda.errors import InvalidInput
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.reproduce.cells import MEANS, Cell, Method
from dpfda.reproduce.readings import OURS, READINGS
from dpfda.reproduce.real_data import RealCell

CONSTANTS = ("C_R", "C_T", "C_r", "rho", "eta", "C_alpha")
ROOT_OF_N = "n^(1/alpha)"  # the paper's m of the dense regime
_CELL_KEYS = ("n", "m", "mean", "d", "alpha", "delta", "seed", "S", "total", "profile", "process_sd", "between")
_METHOD_KEYS = ("n_basis", "width", "reading")


@dataclass(frozen=True)
class Point:
    """A cell, the sweep it belongs to and the coordinates that vary there."""

    sweep: str
    coordinates: tuple[tuple[str, Any], ...]
    cell: Cell | RealCell


@dataclass(frozen=True)
class Experiment:
    """What one configuration asks for.

    `reading` is that of its published method; an experiment of `parts` has the points of all of them, and maybe its own.
    """

    name: str
    title: str
    source: str
    points: tuple[Point, ...]
    quick: bool
    reading: str = OURS
    parts: tuple[Experiment, ...] = ()

    @property
    def label(self) -> str:
        """The name that files have."""
        return self.name if self.reading == OURS else f"{self.name}-{self.reading}"


def list_experiments() -> list[str]:
    """The experiments, in the order of the paper."""
    found = [entry.name[:-5] for entry in _folder().iterdir() if entry.name.endswith(".toml")]
    return sorted(found, key=lambda name: _read_config(name).get("order", 99))


def load_experiment(
    name: str,
    *,
    quick: bool = False,
    swan: str | None = None,
    adaptive_at_most: int | None = None,
    reading: str = OURS,
) -> Experiment:
    """The experiment called `name`; `swan` is the user's own copy of the paper's data.

    `adaptive_at_most` caps the repetitions of the default method, which takes nearly all of the time. With a `reading` other
    than ours the published method is read that way, and the default method is left out.
    """
    _validate.choice("--reading", reading, list(READINGS))
    settings = _read_config(_validate.choice("experiment", name, list_experiments()))
    if quick:
        settings = merge_tables(settings, settings.get("quick", {}))
    if adaptive_at_most is not None and "adaptive" in settings["methods"]:
        cap = min(settings["methods"]["adaptive"]["repetitions"], _validate.integer("repetitions", adaptive_at_most))
        settings = merge_tables(settings, {"methods": {"adaptive": {"repetitions": cap}}})
    if reading != OURS:
        methods = _read_otherwise(settings["methods"], reading)
        settings = {**settings, "methods": methods, "sweep": _keep_sweeps(settings.get("sweep", {}), methods)}
    points: list[Point] = []
    parts: list[Experiment] = []
    if "readings" in settings:
        parts = [
            load_experiment(part, quick=quick, swan=swan, reading=one)
            for one in settings["readings"]["names"]
            for part in settings["readings"]["experiments"]
        ]
        budgets = settings["readings"].get("epsilon", {})
        parts = [_only_published(part, budgets.get(part.name)) for part in parts]
        points.extend(point for part in parts for point in part.points)
    if "sweep" in settings:
        for sweep, axes in settings["sweep"].items():
            points.extend(_make_points(sweep, axes, settings))
    if "real" in settings:
        points.extend(_make_real_points(settings, swan))
    return Experiment(name, settings["title"], settings["source"], tuple(points), quick, reading, tuple(parts))


def _read_otherwise(methods: Mapping[str, Any], reading: str) -> dict[str, Any]:
    """The tables of the published method, read otherwise, and of least squares."""
    chosen = READINGS[reading]
    changes = {"reading": reading} if chosen.eta is None else {"reading": reading, "eta": chosen.eta}
    kept = {name: table for name, table in methods.items() if name == "nonprivate"}
    return {"published": {**methods["published"], **changes}, **kept}


def _keep_sweeps(sweeps: Mapping[str, Any], methods: Mapping[str, Any]) -> dict[str, Any]:
    """The sweeps that have a method left."""
    kept = {}
    for name, axes in sweeps.items():
        wanted = [method for method in axes.get("methods", methods) if method in methods]
        if wanted:
            kept[name] = {**axes, "methods": wanted}
    return kept


def _only_published(part: Experiment, epsilons: Sequence[float] | None) -> Experiment:
    """Without the default method and the variant, which no reading changes; readings but ours maybe with other budgets."""
    points = []
    for point in part.points:
        methods = tuple(method for method in point.cell.methods if method.name in ("published", "nonprivate"))
        if epsilons is not None and part.reading != OURS:
            budgets = tuple(map(float, epsilons))
            methods = tuple(
                dataclasses.replace(method, epsilons=budgets) if method.name == "published" else method
                for method in methods
            )
        if any(method.name == "published" for method in methods):
            points.append(dataclasses.replace(point, cell=dataclasses.replace(point.cell, methods=methods)))
    return dataclasses.replace(part, points=tuple(points))


def merge_tables(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Tables merge_tables key by key; anything else replaced."""
    result = dict(base)
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merge_tables(result[key], value) if both else value
    return result


def _folder() -> Any:
    return resources.files("dpfda.reproduce") / "configs"


def _read_config(name: str) -> dict[str, Any]:
    return tomllib.loads((_folder() / f"{name}.toml").read_text(encoding="utf-8"))


def _make_points(sweep: str, axes: Mapping[str, Any], settings: Mapping[str, Any]) -> list[Point]:
    """One point for each combination of the listed values."""
    fixed = {**settings.get("data", {}), **axes}
    wanted = fixed.pop("methods", list(settings["methods"]))
    varying = [key for key, value in fixed.items() if isinstance(value, list)]
    points = []
    for values in itertools.product(*(fixed[key] for key in varying)):
        chosen = {**fixed, **dict(zip(varying, values, strict=True))}
        chosen = {key: tuple(value) if isinstance(value, list) else value for key, value in chosen.items()}
        methods = tuple(_make_method(name, settings["methods"][name], chosen) for name in wanted)
        coordinates = tuple((key, chosen[key]) for key in varying)
        points.append(Point(sweep, coordinates, _make_cell(chosen, methods)))
    return points


def _make_cell(chosen: Mapping[str, Any], methods: tuple[Method, ...]) -> Cell:
    unknown = set(chosen) - {*_CELL_KEYS, *_METHOD_KEYS, *CONSTANTS}
    if unknown:
        raise InvalidInput(f"sweep has the unknown setting {sorted(unknown)[0]!r}.")
    values = {key: chosen[key] for key in _CELL_KEYS if key in chosen}
    silos, total = values.pop("S", None), values.pop("total", None)
    if silos is not None:
        values["profile"] = (1.0,) * silos
    if total is not None:
        values["n"] = total // len(values["profile"])
    if values["m"] == ROOT_OF_N:
        values["m"] = max(1, round(values["n"] ** (1 / values.get("alpha", 3.0))))
    _validate.choice("mean", values.get("mean", "mu_1"), list(MEANS))
    return Cell(**values, methods=methods)


def _make_method(name: str, table: Mapping[str, Any], chosen: Mapping[str, Any]) -> Method:
    reading = "full-batch" if name == "full-batch" else chosen.get("reading", table.get("reading", OURS))
    constants = {key: chosen.get(key, table.get(key)) for key in CONSTANTS}
    if READINGS[reading].eta is not None:
        constants["eta"] = chosen.get("eta", READINGS[reading].eta)
    given = {key: float(value) for key, value in constants.items() if value is not None}
    low, high = table.get("y_bounds", (-4.0, 5.0))
    middle, half = (low + high) / 2, (high - low) / 2 * chosen.get("width", 1.0)
    return Method(
        name,
        tuple(float(epsilon) for epsilon in table["epsilon"]),
        table["repetitions"],
        basis=table.get("basis", "fourier"),
        n_basis=chosen.get("n_basis", table.get("n_basis")),
        y_bounds=(middle - half, middle + half),
        constants=dataclasses.replace(PublishedConstants(), **given),  # type: ignore[arg-type]
        reading=reading,
    )


def _make_real_points(settings: Mapping[str, Any], swan: str | None) -> list[Point]:
    real = settings["real"]
    methods: Sequence[Method] = [_make_method(name, table, {}) for name, table in settings["methods"].items()]
    domain = (float(real["domain"][0]), float(real["domain"][1]))
    cell = RealCell(real["dataset"], domain, real["n"], real["m"], real["delta"], real["seed"], tuple(methods))
    points = [Point(real["dataset"], (), cell)]
    if swan is not None:
        own = dataclasses.replace(cell, dataset="swan", domain=datasets.SWAN_DOMAIN, n=None, swan=swan)
        points.append(Point("swan", (), own))
    return points
