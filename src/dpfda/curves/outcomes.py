"""`Outcomes`: several variables measured on the same subjects. One subject, with all its curves, is one privacy unit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfda import _validate
from dpfda.curves.curves import Curves
from dpfda.errors import InvalidInput

COMPLETE, OWN = "complete", "own"
VISITS = (COMPLETE, OWN)
FEWEST, MOST = 2, 16


class Outcomes:
    """Curves of several outcomes of the same subjects: curve i of each outcome is that of subject i.

    Parameters
    ----------
    curves : mapping of str to Curves
        The outcomes by name; all have the same number of curves and the same design columns.
    visits : {"complete", "own"}
        "complete": all outcomes have the same points, those visits at which every one of them was measured, so that their
        design is released once for all. "own": each outcome has its own points, and its design is released by itself.

    Notes
    -----
    The unit that is protected is a subject with the curves of all outcomes: replacing a subject may change one curve of
    every outcome. A subject without a point of some outcome has an empty curve there, so that the number of curves, which
    is public, is the same for all.

    With "complete" a value that is missing removes the visit from all outcomes: the rule looks at one row alone, and is
    the same for every subject. A visit at which an outcome is missing is then lost to the others, too. With "own" nothing
    is lost, and what is learnt of the visits is paid for with every outcome. Choose from what is known in public of how
    the study was run, not from the data.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpfda import Outcomes
    >>> visits = pd.DataFrame(
    ...     {"pid": [1, 1, 2, 3], "age": [40, 50, 45, 60], "sbp": [120, 130, 110, 140], "dbp": [80, None, 70, None]}
    ... )
    >>> both = Outcomes.from_frame(visits, id="pid", x="age", y=["sbp", "dbp"])
    >>> both
    Outcomes('sbp', 'dbp'; n=3, p=1, visits='complete')
    >>> both["sbp"].counts
    array([1, 1, 0])
    >>> Outcomes.from_frame(visits, id="pid", x="age", y=["sbp", "dbp"], visits="own")["sbp"].counts
    array([2, 1, 1])
    """

    def __init__(self, curves: Mapping[str, Curves], *, visits: str = COMPLETE) -> None:
        if not isinstance(curves, Mapping) or not FEWEST <= len(curves) <= MOST:
            raise InvalidInput(f"curves must map {FEWEST} to {MOST} names of outcomes to Curves.")
        if not all(isinstance(name, str) and isinstance(each, Curves) for name, each in curves.items()):
            raise InvalidInput("curves must map names of outcomes to Curves, such as {'sbp': ..., 'dbp': ...}.")
        self.visits = _validate.choice("visits", visits, VISITS)
        self._curves = dict(curves)
        first, *others = self._curves.values()
        for name, other in zip(self.outcomes[1:], others, strict=True):
            if (other.n, other.p, other.names) != (first.n, first.p, first.names):
                raise InvalidInput(
                    f"Outcomes {self.outcomes[0]!r} and {name!r} must have the same subjects and the same design columns."
                )
            if first.labels is not None and other.labels is not None and not np.array_equal(first.labels, other.labels):
                raise InvalidInput(
                    f"Outcomes {self.outcomes[0]!r} and {name!r} must have the same ids in the same order."
                )
            if visits == COMPLETE and not have_same_points(first, other):
                raise InvalidInput(
                    f"Outcomes {self.outcomes[0]!r} and {name!r} have different points: make them with "
                    "Outcomes.from_frame, which keeps the visits at which all were measured, or give visits='own'."
                )

    @classmethod
    def from_frame(
        cls,
        df: Any,
        *,
        id: str,
        x: str,
        y: Sequence[str],
        design: str | Sequence[str] | None = None,
        covariates: Mapping[str, Any] | None = None,
        y_levels: Mapping[str, Sequence[str]] | None = None,
        visits: str = COMPLETE,
    ) -> Outcomes:
        """Columns of a pandas, polars or pyarrow table with one row for each visit, as in `Curves.from_frame`.

        `y` names the outcomes; `y_levels` has both values of those that are yes/no columns.
        """
        names, levels = check_outcome_names(y), dict(y_levels or {})
        strange = next((name for name in levels if name not in names), None)
        if strange is not None:
            raise InvalidInput(f"y_levels names {strange!r}, which is not among y.")
        found = {
            name: Curves.from_frame(
                df,
                id=id,
                x=x,
                y=name,
                design=design,
                covariates=covariates,
                y_levels=levels.get(name),
                measured=[(other, levels.get(other)) for other in names if other != name] if visits == COMPLETE else (),
            )
            for name in names
        }
        return cls(found, visits=visits)

    def __repr__(self) -> str:
        return f"Outcomes({', '.join(map(repr, self.outcomes))}; n={self.n}, p={self.p}, visits={self.visits!r})"

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The names of the outcomes."""
        return tuple(self._curves)

    @property
    def n(self) -> int:
        """The number of subjects."""
        return self._first.n

    @property
    def p(self) -> int:
        """The length of the design vectors."""
        return self._first.p

    @property
    def names(self) -> tuple[str, ...]:
        """The public names of the design columns, where a table gave them."""
        return self._first.names

    @property
    def design_changes(self) -> bool:
        """Whether the design changes within a curve of some outcome."""
        return any(each.design_changes for each in self)

    @property
    def _first(self) -> Curves:
        return self._curves[self.outcomes[0]]

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Curves]:
        return iter(self._curves.values())

    def __getitem__(self, name: str) -> Curves:
        """The curves of one outcome."""
        if name not in self._curves:
            raise InvalidInput(f"There is no outcome {name!r}; there are {', '.join(map(repr, self.outcomes))}.")
        return self._curves[name]

    def take(self, indices: ArrayLike) -> Outcomes:
        """The subjects with these indices, in this order, with all their curves; a mask or a slice selects as in numpy."""
        chosen = np.arange(self.n)[indices] if isinstance(indices, slice) else indices
        return Outcomes({name: each.take(chosen) for name, each in self._curves.items()}, visits=self.visits)

    def fingerprint(self, key: bytes) -> bytes:
        """32 bytes that change with any curve of any outcome, or with a name. Private, as is the key."""
        digest = hashlib.blake2b(key=key[:64], digest_size=32, person=b"dpfda outcomes")
        for name, each in self._curves.items():
            digest.update(hashlib.sha256(name.encode()).digest() + each.fingerprint(key))
        return digest.digest()


def check_outcome_names(y: Sequence[str]) -> tuple[str, ...]:
    """The names of several outcomes: columns of a table, each once."""
    names = tuple(y) if isinstance(y, Sequence) and not isinstance(y, str) else ()
    if not FEWEST <= len(names) <= MOST or not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"y must list {FEWEST} to {MOST} columns, such as ['sbp', 'dbp'], for several outcomes.")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"y must list every outcome once; leave out the second {twice!r}.")
    return names


def have_same_points(one: Curves, other: Curves) -> bool:
    """Whether two outcomes have the same visits with the same design; what they measured there may differ."""
    named = ("offsets", "x", "design")
    if not all(np.array_equal(getattr(one, name), getattr(other, name)) for name in named):
        return False
    if one.rows is None or other.rows is None:
        return one.rows is other.rows
    return np.array_equal(one.rows, other.rows)
