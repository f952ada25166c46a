"""What `dpfda demo` shows: the private mean of a blood lipid over age, 15,205 real subjects, with a report and a picture."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np

from dpfda.curves.dataset_list import DatasetInfo
from dpfda.curves.datasets import get_dataset_info, load_dataset
from dpfda.errors import NotPrivateWarning
from dpfda.estimators import PrivateMean
from dpfda.report.figures import draw_mean, save_figure

DATASET = "nafld-lipid"


def show_example(folder: Path, epsilon: float = 1.0, delta: float = 1e-5) -> None:
    """Load, fit, print, draw."""
    info = get_dataset_info(DATASET)
    curves = load_dataset(DATASET)
    print(f"{info.title}: {curves.n:,} subjects, {curves.n_points:,} measurements")
    started = time.perf_counter()
    private = PrivateMean(epsilon, delta, domain=info.domain, y_bounds=info.y_bounds).fit(curves)
    seconds = time.perf_counter() - started
    reference = PrivateMean(domain=info.domain, y_bounds=info.y_bounds, method="nonprivate", n_basis=private.n_basis_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # the data are public: the demo may show both
        reference.fit(curves)
    _print_table(private, reference)
    print(f"\nFitted in {seconds:.2f} s.\n\nPrivacy\n{private.privacy_}")
    title = f"{info.title}, {curves.n:,} subjects"
    figure = draw_mean(private, reference=reference, title=title, x_label=info.x, y_label=info.y)
    print(f"\nPicture: {save_figure(figure, folder / 'demo.png')}")
    print(f"Report:  {_write_report(private, info, folder / 'demo.html')}")


def _print_table(private: PrivateMean, reference: PrivateMean) -> None:
    low_end, high_end = private.basis_.domain
    grid = np.linspace(low_end, high_end, 9)
    has_band = getattr(private, "has_band", False)
    low, high = private.band(0.95, x=grid) if has_band else (np.full(9, np.nan),) * 2
    print(f"\n{'age':>6} {'private':>9} {'95% band':>17} {'not private':>12}")
    rows = zip(grid, private.predict(grid), low, high, reference.predict(grid), strict=True)
    for x, value, lower, upper, raw in rows:
        print(f"{x:6.0f} {value:9.2f}   [{lower:6.2f}, {upper:6.2f}] {raw:12.2f}")


def _write_report(private: PrivateMean, info: DatasetInfo, path: Path) -> Path:
    from dpfda.report.document import StudyDescription, make_result_document
    from dpfda.report.html import render_report

    study = StudyDescription(
        source=info.source,
        x=info.x,
        y=info.y,
        functions=("mean",),
        title=info.title,
        x_label=f"{info.x} (years)",
        y_label=f"{info.y} (mg/dl)",
    )
    path.write_text(render_report(make_result_document(private, study, command="dpfda demo")), encoding="utf-8")
    return path
