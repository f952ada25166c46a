"""The families of the utility benchmark, in the order of their importance, with the limits that they are held to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.utility_promised import list_rows

EPSILONS = (0.5, 1.0, 2.0)
Limits = tuple[float, float, float]


@dataclass(frozen=True)
class Task:
    """A cell that is to be measured."""

    family: str
    kind: str
    problem: str
    n: int
    epsilon: float
    old: bool
    oracle: bool

    @property
    def key(self) -> tuple[str, str, int, float]:
        """What tells cells apart."""
        return self.family, self.problem, self.n, self.epsilon


@dataclass(frozen=True)
class Family:
    """Problems with common limits: on the ratio to least squares, or to the oracle radius, at eps .5, 1 and 2."""

    name: str
    problems: tuple[str, ...]
    sizes: tuple[int, ...]
    rule: str
    kind: str = "mean"
    ratio: Limits | None = None
    oracle: Limits | None = None
    effect: Limits | None = None
    coverage: float = 0.93
    epsilons: tuple[float, ...] = EPSILONS
    old: bool = True

    @property
    def title(self) -> str:
        """The heading on the page."""
        return _TITLES.get(self.name, self.name.capitalize())


_TITLES = {
    "skewed": "Skewed outcomes, and heavy tails", "binary": "Binary outcomes, scores and counts",
    "rare": "Rare events, outliers, many zeros", "symmetric": "Symmetric outcomes", "designs": "Designs",
    "wide": "Bounds that are too wide", "promised": "Promised by version 0.1, delta = 1e-3",
    "further": "Further settings of version 0.1, delta = 1e-5", "ends": "Curves with free ends", "peak": "A sharp peak",
}  # fmt: skip
_SKEWED = (2.0, 1.4, 1.4)
_RARE = (2.0, 1.5, 1.5)
_EFFECT = (10.0, 5.0, 3.0)


def _covariates(
    name: str, n: int, ratio: Limits, *, problems: tuple[str, ...] = (), effect: Limits | None = None
) -> Family:
    rule = f"{ratio[0]:g} / {ratio[1]:g} / {ratio[2]:g}"
    rule += "; effects 10 / 5 / 3" if effect else ""
    return Family(name, problems or (name,), (n,), rule, "covariates", ratio, effect=effect, coverage=0.92)


_ALL = (
    Family("skewed", ("lognormal", "skewness grows with x", "t3"), (1000, 5000), "2 / 1.4 / 1.4 x oracle", oracle=_SKEWED),
    Family("binary", ("binary 20-80%", "scores 0-27", "counts"), (1000,), "4.5 / 2.2 / 1.4", ratio=(4.5, 2.2, 1.4)),
    Family("rare", ("rare binary 2-6%", "2% outliers", "zero-inflated gamma"), (1000,), "2 / 1.5 / 1.5 x oracle",
           oracle=_RARE),
    Family("symmetric", ("symmetric",), (1000, 5000, 300, 10_000), "1.15 x version 0.1 (4 x where n mu < 260)"),
    Family("obesity", ("obesity",), (4856,), "level within 3 points; inside in 17 of 20", "obesity", epsilons=(1.0,),
           old=False),
    Family("designs", ("scheduled visits", "baseline clump", "gap", "falling density"), (1000,), "4 / 2 / 1.5",
           ratio=(4, 2, 1.5)),
    Family("wide", ("bounds 10 times too wide", "bounds 100 times too wide"), (1000,), "1.3 x usual bounds"),
    Family("ends", ("growth", "exponential decay", "line", "sin"), (5000,), "RMSE 0.8, slopes at ends 0.35 of version 0.1's",
           epsilons=(1.0,)),
    Family("peak", ("sharp peak",), (2000, 10_000), "4 / 2.5 / 2", ratio=(4, 2.5, 2)),
    _covariates("5% treated", 2000, (8, 4, 2.5), effect=_EFFECT),
    _covariates("30% treated", 2000, (3, 1.5, 1.2), effect=_EFFECT),
    _covariates("covariate depends on x", 2000, (5, 2.5, 1.8)),
    _covariates("four levels", 2000, (8, 3.5, 1.8), effect=_EFFECT),
    _covariates("offset", 2000, (3, 1.6, 1.2), problems=("offset: bmi", "offset: age in days")),
    _covariates("correlation .95", 5000, (5, 2.3, 1.6)),
    _covariates("d = 8", 5000, (20, 4, 2)),
    _covariates("changes within a subject", 2000, (5, 2.5, 1.8)),
    _covariates("binary, 30% treated", 5000, (5, 2.5, 1.6), effect=_EFFECT),
    Family("sites", ("alike", "means differ", "slopes differ", "designs differ", "designs and means differ"), (0,),
           "8 / 4 / 2.2 alike; others 1.3 x combination", "sites", ratio=(8, 4, 2.2), coverage=0.92, old=False),
    Family("small site", ("small site, alike", "small site, means differ"), (60,), "0.4 of its fit alone", "sites",
           ratio=(0.4, 0.4, 0.4), coverage=0.90, old=False),
    Family("promised", tuple(list_rows(with_target=True)), (0,), "the figures of version 0.1", "promised", old=False),
    Family("further", tuple(list_rows(with_target=False)), (0,), "none", "promised", old=False),
    Family("garbage site", ("garbage site",), (0,), "1.5 x the fit without it", "sites", ratio=(1.5, 1.5, 1.5), old=False),
)  # fmt: skip
FAMILIES = {family.name: family for family in _ALL}


def list_tasks(families: Iterable[Family], sizes: Sequence[int] | None, epsilons: Sequence[float] | None) -> list[Task]:
    """Cells of the families, the first size of each family first."""
    families = list(families)
    found: list[Task] = []
    for position in range(max(len(family.sizes) for family in families)):
        for family in (family for family in families if position < len(family.sizes)):
            n = family.sizes[position]
            found += _list_cells(family, n)
    by_size = [
        task for task in found if sizes is None or task.n in sizes or task.kind in ("sites", "obesity", "promised")
    ]
    return [task for task in by_size if epsilons is None or task.epsilon in epsilons]


def _list_cells(family: Family, n: int) -> list[Task]:
    if family.kind == "promised":
        rows = list_rows(with_target=family.name == "promised").items()
        return [Task(family.name, family.kind, name, row.n, row.parts[0].epsilon, False, False) for name, row in rows]
    return [
        Task(family.name, family.kind, problem, n, epsilon, family.old, family.oracle is not None)
        for problem in family.problems
        for epsilon in family.epsilons
    ]
