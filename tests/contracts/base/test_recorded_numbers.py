"""A redesign changes no number: seeded fits, bands, forecasts and a result document, as they were recorded.

On an instruction set that was recorded, every bit must agree; on another one, compiled sums and BLAS may round differently,
and the numbers must agree to nine digits. `python tests/contracts/base/test_recorded_numbers.py` records them anew: only
when a change of the method is meant.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpfda import Curves, PrivateMean, PrivateVaryingCoefficients, PublishedConstants, Silo

RECORD = Path(__file__).parents[2] / "corpus" / "recorded_numbers.json"
PUBLIC = {"domain": (20.0, 80.0), "y_bounds": (0.0, 150.0)}
AT = np.linspace(20.0, 80.0, 7)


def instruction_set() -> str:
    """What rounding depends on: the processor that kernels are compiled for, and numpy's BLAS."""
    from llvmlite import binding

    features = binding.get_host_cpu_features().flatten()
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["version"]  # type: ignore[call-overload,index]
    return hashlib.sha256(f"{binding.get_host_cpu_name()} {features} {np.__version__} {blas}".encode()).hexdigest()[:16]


def curves(n: int, seed: int, *, covariates: int = 0) -> Curves:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, n)
    ids = np.repeat(np.arange(n), counts)
    x = rng.uniform(20, 80, ids.size)
    effects = rng.normal(size=(n, 2)) * [12.0, 6.0]
    y = (
        60
        + 15 * np.sin((x - 20) / 15)
        + effects[ids, 0]
        + effects[ids, 1] * (x - 50) / 30
        + 5 * rng.normal(size=ids.size)
    )
    if not covariates:
        return Curves.from_long(ids, x, y)
    design = np.column_stack([np.ones(n), rng.integers(0, 2, n), rng.uniform(-1, 1, (n, covariates - 1))])
    y = y + 4 * design[ids, 1] + 3 * design[ids, -1] * (x - 50) / 30
    return Curves.from_long(ids, x, y, design[ids])


def promise(data: Any) -> dict[str, float]:
    """Of raw curves; silos spend what they allow themselves."""
    return {} if isinstance(data, list) else {"epsilon": 1.0, "delta": 1e-5}


def mean(data: Any, **options: Any) -> PrivateMean:
    return PrivateMean(**{**promise(data), "random_state": 11, **PUBLIC, **options}).fit(data)


def coefficients(data: Any, **options: Any) -> PrivateVaryingCoefficients:
    settings = {**promise(data), "random_state": 11, "design_bounds": (-1.0, 1.0), **PUBLIC, **options}
    return PrivateVaryingCoefficients(**settings).fit(data)


def numbers(fitted: Any) -> dict[str, list[float]]:
    """Coefficients, band and expected error."""
    found = {"coef": np.ravel(fitted.coef_).tolist()}
    if fitted.has_band:
        lower, upper = fitted.band(0.95, x=AT)
        found["band"] = np.ravel([lower, upper]).tolist()
        pointwise, _ = fitted.band(0.9, x=AT, simultaneous=False)
        found["pointwise"] = np.ravel(pointwise).tolist()
    if fitted.expected_error_ is not None:
        error = fitted.expected_error_
        found["error"] = [error.bias, error.sampling, error.privacy, error.total]
    return found


def silos(covariates: int = 0) -> list[Silo]:
    sizes = ((300, 1.0), (700, 0.5), (150, 4.0))
    return [
        Silo(
            curves(n, seed, covariates=covariates), epsilon=epsilon, delta=1e-5, points_per_curve=4, name=f"site-{seed}"
        )
        for seed, (n, epsilon) in enumerate(sizes, start=5)
    ]


def streamed() -> dict[str, list[float]]:
    """From a Parquet file, in bounded memory."""
    import polars as pl

    rng = np.random.default_rng(8)
    ids = rng.integers(0, 400, 2500)
    x = rng.uniform(20, 80, ids.size)
    frame = pl.DataFrame({"pid": ids, "age": x, "hdl": 60 + 10 * np.cos(x / 9) + 9 * rng.normal(size=ids.size)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        frame.write_parquet(path)
        loaded = Curves.from_source(path, id="pid", x="age", y="hdl", scratch=folder, **PUBLIC)
        return numbers(mean(loaded))


def forecasts() -> dict[str, list[float]]:
    """Of the error before anything is spent."""
    estimators = (
        (PrivateMean(1.0, 1e-5, **PUBLIC), {"n": 500, "m": 5.0}),
        (PrivateMean(0.5, 1e-5, **PUBLIC), {"n": 400, "m": 3.0, "S": 5}),
        (PrivateVaryingCoefficients(2.0, 1e-5, design_bounds=(-1, 1), **PUBLIC), {"n": 2000, "m": 6.0, "d": 2}),
    )
    found = [estimator.forecast(**sizes) for estimator, sizes in estimators]  # type: ignore[arg-type]
    return {f"forecast {k}": [e.bias, e.sampling, e.privacy, e.total] for k, e in enumerate(found)}


def document() -> dict[str, list[float]]:
    """The numbers that a report is drawn from."""
    from dpfda.report.document import StudyDescription, make_result_document

    result = make_result_document(mean(curves(600, 4)), StudyDescription("visits.csv", "age", "hdl", ("mean",)))
    found: dict[str, list[float]] = {}

    def collect(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                collect(f"{name}.{key}", inner)
        elif isinstance(value, list):
            for inner in value:
                collect(name, inner)
        elif isinstance(value, float):
            found.setdefault(name, []).append(value)

    collect("result", {key: value for key, value in result.items() if key not in ("created", "repeat")})
    return found


def quantiles() -> dict[str, list[float]]:
    from dpfda.estimators.private_quantiles import private_quantiles

    silo = Silo(curves(800, 9), epsilon=1.0, delta=1e-5, random_state=2)
    return {"quantiles": list(private_quantiles(silo, (0.1, 0.5, 0.9), domain=(20, 80), search=(0, 150)).values)}


CASES: dict[str, Callable[[], dict[str, list[float]]]] = {
    "mean, cosines": lambda: numbers(mean(curves(500, 1))),
    "mean, Fourier": lambda: numbers(mean(curves(500, 1), basis="fourier", n_basis=7)),
    "mean, Fourier extension": lambda: numbers(mean(curves(500, 1), basis="fourier-extension", extension=1.4)),
    "mean, given size and smoothness": lambda: numbers(mean(curves(1200, 2), n_basis=9, alpha=3.0, epsilon=4.0)),
    "mean, large n mu": lambda: numbers(mean(curves(6000, 3), epsilon=8.0, delta=1e-3)),
    "mean, three silos": lambda: numbers(mean(silos())),
    "varying coefficients": lambda: numbers(coefficients(curves(1500, 2, covariates=2))),
    "varying coefficients, three silos": lambda: numbers(coefficients(silos(covariates=2), n_basis=4)),
    "published, Algorithm 1": lambda: numbers(mean(curves(500, 1), method="published", points_per_curve=4)),
    "published, Algorithm 2": lambda: numbers(
        mean(silos(), method="published", constants=PublishedConstants(C_T=2.0), y_scale="none")
    ),
    "published, Algorithm 4, cone": lambda: numbers(
        coefficients(curves(600, 2, covariates=2), method="published", projection="cone", points_per_curve=4)
    ),
    "non-private": lambda: numbers(mean(curves(500, 1), method="nonprivate")),
    "streamed from Parquet": streamed,
    "quantiles": quantiles,
    "forecasts": forecasts,
    "result document": document,
}


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_that_were_recorded(name: str) -> None:
    record = json.loads(RECORD.read_text())
    with quiet():
        found = CASES[name]()
    expected = record["numbers"][name]
    assert found.keys() == expected.keys()
    for key, values in found.items():
        if instruction_set() in record["instruction_sets"]:
            assert values == expected[key], key
        np.testing.assert_allclose(values, expected[key], rtol=1e-9, atol=1e-9, err_msg=key)


def record() -> None:
    """Write the numbers of the present code."""
    with quiet():
        found = {name: case() for name, case in CASES.items()}
    RECORD.write_text(json.dumps({"instruction_sets": [instruction_set()], "numbers": found}, indent=0) + "\n")


if __name__ == "__main__":
    sys.exit(record())
