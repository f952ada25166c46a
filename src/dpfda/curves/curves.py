"""`Curves`: sparsely observed functions in flat arrays. One curve is one privacy unit."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda._typing import Floats, Integers
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from dpfda.curves.fingerprint import Lanes

ONES_ALREADY = "design has a column of ones already; drop it or do not add an intercept."


@dataclass(frozen=True, eq=False, repr=False)
class Curves:
    """n curves, each observed at its own points, with one design vector for each curve or, where it changes, each point.

    Build it with `from_long`, `from_frame`, `from_source` or `from_skfda`. Curves are in order of id, or of first
    appearance if the ids cannot be sorted; points keep the order of the input.

    Parameters
    ----------
    x, y : array of shape (number of points,)
        The points of all curves, one curve after the other: curve i holds ``x[offsets[i]:offsets[i + 1]]``.
    offsets : array of shape (n + 1,)
        Where each curve begins, from 0 to the number of points.
    design : array of shape (n, p)
        One vector G_i for each curve, which is (1) for a mean.
    labels : array of shape (n, 2), optional
        128 bits of each curve's id, where a table gave it: only `fingerprint` reads them.
    rows : array of shape (number of points, p), optional
        One vector G_ij for each point, if the design changes within a curve. `design` then holds that of the other curves,
        and zeros for those within which it changes (`changes`). None if it changes within no curve.
    names : tuple of str, optional
        The public names of the design columns, where a table gave them.

    Notes
    -----
    One curve is the unit that is protected. The number of curves is public, so no value of the data may change it:

    | input                               | what becomes of it                                              |
    |-------------------------------------|-----------------------------------------------------------------|
    | a point with NaN or infinite x or y | the point is dropped                                            |
    | a point whose design is not finite  | the point is dropped, whatever the others of its curve have     |
    | a curve that loses all its points   | stays as an empty curve (m_i = 0), which contributes zero       |
    | a curve of one point                | allowed                                                         |
    | equal x within a curve              | allowed                                                         |
    | a design that varies within a curve | kept: one vector for each point (`rows`)                        |
    | a missing id (None, NaN, NA, NaT)   | refused: the row belongs to nobody                              |
    | no rows                             | refused                                                         |

    Examples
    --------
    Four rows of three subjects. Bob's second value is missing: the point goes, the curve stays.

    >>> from dpfda import Curves
    >>> curves = Curves.from_long(["ann", "bob", "bob", "cy"], [30, 41, 52, 47], [1.2, 1.5, float("nan"), 1.1])
    >>> curves
    Curves(n=3, p=1)
    >>> curves.counts
    array([1, 1, 1])

    Slices, masks and index arrays select whole curves.

    >>> curves[1:].x
    array([41., 47.])

    A covariate that changes from visit to visit, and is missing at one of them.

    >>> dose = [[1.0], [1.0], [2.0], [2.0], [float("nan")]]
    >>> visits = Curves.from_long(["ann", "ann", "bob", "bob", "bob"], [0, 1, 0, 1, 2], [5, 6, 4, 4, 3], dose)
    >>> visits.rows is None, visits.counts
    (True, array([2, 2]))
    >>> dose[1] = [3.0]
    >>> Curves.from_long(["ann", "ann", "bob", "bob", "bob"], [0, 1, 0, 1, 2], [5, 6, 4, 4, 3], dose).rows.ravel()
    array([1., 3., 2., 2.])
    """

    x: Floats
    y: Floats
    offsets: Integers
    design: Floats
    labels: NDArray[np.uint64] | None = None
    rows: Floats | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        x, y = _validate.vector("x", self.x), _validate.vector("y", self.y)
        offsets = np.array(self.offsets, dtype=np.int64)
        design = _validate.numeric("design", self.design)
        if y.size != x.size:
            raise InvalidInput(f"y must have one entry for each x ({x.size}), got {y.size}.")
        if offsets.ndim != 1 or offsets.size < 2 or offsets[0] != 0 or offsets[-1] != x.size:
            raise InvalidInput("offsets must run from 0 to the number of points and hold at least one curve.")
        if np.any(np.diff(offsets) < 0):
            raise InvalidInput("offsets must not decrease.")
        if design.ndim != 2 or design.shape[0] != offsets.size - 1 or design.shape[1] < 1:
            raise InvalidInput(f"design must have one row for each of {offsets.size - 1} curves, got {design.shape}.")
        if not np.isfinite(design).all():
            raise InvalidInput("design must hold finite numbers only; use Curves.from_long to handle missing values.")
        if self.labels is not None and self.labels.shape != (offsets.size - 1, 2):
            raise InvalidInput(f"labels must have one row of two words for each of {offsets.size - 1} curves.")
        _check_names(self.names, design.shape[1])
        rows = self.rows
        if rows is not None:
            rows = _validate.numeric("rows", rows) + 0.0  # -0.0 is 0.0
            if rows.shape != (x.size, design.shape[1]) or not np.isfinite(rows).all():
                raise InvalidInput(f"rows must hold {design.shape[1]} finite numbers for each of {x.size} points.")
            design, rows = settle_design(design + 0.0, rows, offsets)
        self._set_arrays(x, y, offsets, design, rows)

    @classmethod
    def of_checked_arrays(
        cls,
        x: Floats,
        y: Floats,
        offsets: Integers,
        design: Floats,
        labels: NDArray[np.uint64] | None = None,
        rows: Floats | None = None,
        names: tuple[str, ...] = (),
    ) -> Curves:
        """Arrays that are known to be right and belong to nobody else, neither copied nor read."""
        _check_names(names, design.shape[1])
        curves = object.__new__(cls)
        object.__setattr__(curves, "labels", labels)
        object.__setattr__(curves, "names", names)
        curves._set_arrays(x, y, offsets, design, rows)
        return curves

    def _set_arrays(self, x: Floats, y: Floats, offsets: Integers, design: Floats, rows: Floats | None) -> None:
        for name, array in (("x", x), ("y", y), ("offsets", offsets), ("design", design), ("rows", rows)):
            if array is not None:
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_source(cls, location: str | os.PathLike[str], **reading: Any) -> Curves:
        """A file, folder or database by the rules of `dpfda fit`; larger than memory if need be.

        For the arguments see `dpfda.curves.tables.curves_from_source`: `id`, `x`, `y`, the public `domain` and `y_bounds`,
        and so on. Beyond about two million rows the arrays are maps of nameless scratch files, which vanish with them.
        """
        from dpfda.curves.tables import curves_from_source

        return curves_from_source(location, **reading)

    @classmethod
    def from_long(cls, ids: Iterable[Hashable], x: ArrayLike, y: ArrayLike, design: ArrayLike | None = None) -> Curves:
        """One row for each point: the curve's id, x, y and, if given, `design`, which may change within a curve."""
        codes, n = _curve_codes(ids)
        if not codes.size:
            raise InvalidInput("ids must hold at least one row.")
        x = _validate.vector("x", x, length=codes.size, finite=False)
        y = _validate.vector("y", y, length=codes.size, finite=False)
        rows = None if design is None else _design_rows(design, codes.size)
        if np.any(codes[1:] < codes[:-1]):
            order = _stable_order(codes, n)
            codes, x, y = codes[order], x[order], y[order]
            rows = None if rows is None else rows[order]
        if rows is None:
            return cls._assemble(codes, n, x, y, np.ones((n, 1)))
        return cls._assemble_rows(codes, n, x, y, rows)

    @classmethod
    def from_frame(
        cls,
        df: Any,
        *,
        id: str,
        x: str,
        y: str,
        design: str | Sequence[str] | None = None,
        covariates: Mapping[str, Any] | None = None,
        y_levels: Sequence[str] | None = None,
        measured: Sequence[tuple[str, Sequence[str] | None]] = (),
    ) -> Curves:
        """Columns of a pandas, polars or pyarrow table in long format (one row for each point).

        Without `covariates`, `design` names numeric columns, taken as they are. With `covariates`, which maps names to
        PUBLIC bounds ``(low, high)`` or to a list of PUBLIC levels, text columns become indicators, an intercept is put
        before them, and `design` may be a formula such as ``"male + C(arm) + male:bmi"`` (its grammar is that of
        `dpfda.curves.tables.formula`); left out, it has all covariates. `y_levels` are both values of a yes/no column, that
        of 0 first. `measured` are columns, with their levels if they have any, that must not be missing at a point: those of
        other outcomes (see `Outcomes`).
        """
        frame = _narwhals_frame(df)
        columns = (
            [] if design is None or covariates is not None else [design] if isinstance(design, str) else list(design)
        )
        if design is not None and not columns and covariates is None:
            raise InvalidInput("design must name at least one column; leave it out for a mean.")
        others = [("y", other) for other, _ in measured]
        for role, column in (("id", id), ("x", x), ("y", y), *others, *(("design", name) for name in columns)):
            if column not in frame.columns:
                raise InvalidInput(f"{role} names the column {column!r}, which is not among {list(frame.columns)}.")
        if not len(frame):
            raise InvalidInput("df must have at least one row.")
        from dpfda.curves.tables import frames

        ids, places = frame.get_column(id).to_numpy(), _numeric_column(frame, x)
        values = frames.take_values(frame, y, y_levels)
        for other, levels in measured:
            values = np.where(np.isfinite(frames.take_values(frame, other, levels)), values, np.nan)
        if covariates is not None:
            made = frames.make_design(design, covariates)
            return cls.from_long(ids, places, values, frames.take_design(frame, made)).with_names(made.names)
        rows = np.column_stack([_numeric_column(frame, name) for name in columns]) if columns else None
        return cls.from_long(ids, places, values, rows).with_names(tuple(columns))

    @classmethod
    def from_skfda(cls, fd: Any, design: ArrayLike | None = None, *, points: ArrayLike | None = None) -> Curves:
        """A scikit-fda `FDataGrid` or `FDataIrregular`; an `FDataBasis` at the given `points`.

        `design` has one row for each function.
        """
        from skfda import FDataBasis, FDataGrid, FDataIrregular

        if isinstance(fd, FDataBasis):
            if points is None:
                raise InvalidInput(
                    "points must be given for an FDataBasis: the places x at which its functions are taken."
                )
            fd = fd.to_grid(_validate.vector("points", points))
        elif points is not None:
            raise InvalidInput("points must be left out unless fd is an FDataBasis: fd has points of its own.")
        if not isinstance(fd, (FDataGrid, FDataIrregular)):
            raise InvalidInput(f"fd must be a scikit-fda FDataGrid or FDataIrregular, got {type(fd).__name__}.")
        if fd.dim_domain != 1 or fd.dim_codomain != 1:
            raise InvalidInput("fd must hold functions of one variable with one value.")
        n = len(fd)
        if isinstance(fd, FDataGrid):
            grid = np.asarray(fd.grid_points[0], dtype=np.float64)
            x, y, counts = np.tile(grid, n), fd.data_matrix[..., 0].ravel(), np.full(n, grid.size)
        else:
            x, y = fd.points[:, 0], fd.values[:, 0]
            counts = np.diff(np.append(fd.start_indices, len(x)))
        per_curve = np.ones((n, 1)) if design is None else _design_rows(design, n)
        codes = np.repeat(np.arange(n), counts)
        return cls._assemble(codes, n, _validate.numeric("fd", x), _validate.numeric("fd", y), per_curve)

    def to_skfda(self) -> Any:
        """A scikit-fda `FDataIrregular`, which sorts the points of each curve and holds no empty ones."""
        from skfda import FDataIrregular

        if np.any(self.counts == 0):
            raise InvalidInput("curves must not be empty for scikit-fda; take curves[curves.counts > 0] first.")
        return FDataIrregular(start_indices=self.offsets[:-1].copy(), points=self.x.copy(), values=self.y.copy())

    @classmethod
    def _assemble(cls, codes: Integers, n: int, x: Floats, y: Floats, design: Floats) -> Curves:
        """Apply the rule for missing values; `codes` ascend, and nobody else has the arrays."""
        keep = np.isfinite(x) & np.isfinite(y)
        unusable = np.asarray(~np.isfinite(design).all(axis=1))
        if unusable.any():
            design = np.where(unusable[:, None], 0.0, design)
            keep &= ~unusable[codes]
        if not keep.all():
            codes, x, y = codes[keep], x[keep], y[keep]
        return cls.of_checked_arrays(x, y, _offsets(np.bincount(codes, minlength=n)), design)

    @classmethod
    def _assemble_rows(cls, codes: Integers, n: int, x: Floats, y: Floats, rows: Floats) -> Curves:
        """The same with a design vector for each point. A curve without points keeps its last complete one, if any."""
        usable = np.asarray(np.isfinite(rows).all(axis=1))
        design = np.zeros((n, rows.shape[1]))
        if usable.all():
            design[codes] = rows + 0.0  # -0.0 is 0.0
        else:
            design[codes[usable]] = rows[usable] + 0.0
        keep = usable & np.isfinite(x) & np.isfinite(y)
        if not keep.all():
            codes, x, y, rows = codes[keep], x[keep], y[keep], rows[keep]
        offsets = _offsets(np.bincount(codes, minlength=n))
        if rows.shape[1] and not np.array_equal(rows, design[codes]):
            design, settled = settle_design(design, rows + 0.0, offsets)
            return cls.of_checked_arrays(x, y, offsets, design, rows=settled)
        return cls.of_checked_arrays(x, y, offsets, design)

    @property
    def n(self) -> int:
        """The number of curves, empty ones included."""
        return int(self.offsets.size) - 1

    def __len__(self) -> int:
        return self.n

    @property
    def counts(self) -> Integers:
        """m_i, the number of points of each curve. Private: it must not leave a silo."""
        return np.diff(self.offsets)

    @property
    def n_points(self) -> int:
        """The number of points of all curves. Private, as `counts`."""
        return int(self.x.size)

    @property
    def p(self) -> int:
        """The length d + 1 of the design vectors."""
        return int(self.design.shape[1])

    @property
    def owners(self) -> Integers:
        """For each point the index of its curve."""
        return np.repeat(np.arange(self.n, dtype=np.int64), self.counts)

    @property
    def changes(self) -> NDArray[np.bool_]:
        """Within which curves the design changes. Private, as `counts`."""
        return np.zeros(self.n, dtype=np.bool_) if self.rows is None else find_changes(self.rows, self.offsets)

    @property
    def design_changes(self) -> bool:
        """Whether the design changes within a curve."""
        return self.rows is not None

    @property
    def point_design(self) -> Floats:
        """The design vector of every point."""
        return self.design[self.owners] if self.rows is None else self.rows

    def take(self, indices: ArrayLike) -> Curves:
        """The curves with these indices, in this order; a boolean mask selects as in numpy."""
        try:
            chosen = np.arange(self.n, dtype=np.int64)[np.asarray(indices)]
        except IndexError as error:
            raise IndexError(f"indices must select from {self.n} curves: {error}") from None
        if chosen.ndim != 1 or not chosen.size:
            raise InvalidInput("indices must be one-dimensional and select at least one curve.")
        counts = self.counts[chosen]
        offsets = _offsets(counts)
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][chosen] - offsets[:-1], counts)
        labels = None if self.labels is None else self.labels[chosen]
        rows = None if self.rows is None else self.rows[places]
        return Curves(self.x[places], self.y[places], offsets, self.design[chosen], labels, rows, self.names)

    def __getitem__(self, key: int | slice | ArrayLike) -> Curves:
        """A slice, an index array or a mask gives `Curves`; a single index gives `Curves` of length one."""
        selected = np.arange(self.n)[key] if isinstance(key, slice) else np.atleast_1d(np.asarray(key))
        return self.take(selected)

    def restrict(self, domain: tuple[float, float]) -> Curves:
        """Drop the points outside a PUBLIC interval; the number of curves stays."""
        low, high = _validate.interval("domain", domain)
        keep = (self.x >= low) & (self.x <= high)
        if keep.all():
            return self
        counts = np.bincount(self.owners[keep], minlength=self.n)
        rows = None if self.rows is None else self.rows[keep]
        return Curves(self.x[keep], self.y[keep], _offsets(counts), self.design, self.labels, rows, self.names)

    def with_intercept(self, *, allow_ones: bool = False) -> Curves:
        """Put a column of ones in front of the design (zeros for curves emptied by a missing design).

        Refused if there is a column of ones already, unless `allow_ones`.
        """
        emptied = self._find_emptied()
        if not allow_ones and not emptied.all() and self.constant_columns().any():
            raise InvalidInput(ONES_ALREADY)
        names = ("intercept", *self.names) if self.names else ()
        first = ~emptied & ~self.changes
        rows = None if self.rows is None else np.column_stack([np.ones(self.n_points), self.rows])
        return Curves(self.x, self.y, self.offsets, np.column_stack([first, self.design]), self.labels, rows, names)

    def with_names(self, names: tuple[str, ...]) -> Curves:
        """The same curves, with public names for the design columns."""
        return Curves.of_checked_arrays(self.x, self.y, self.offsets, self.design, self.labels, self.rows, tuple(names))

    def constant_columns(self) -> NDArray[np.bool_]:
        """Which columns of the design are one for all curves but those emptied by a missing design."""
        ones: NDArray[np.bool_] = np.all(self.design[~self._find_emptied() & ~self.changes] == 1.0, axis=0)
        return ones if self.rows is None else ones & np.all(self.rows == 1.0, axis=0)

    def _find_emptied(self) -> NDArray[np.bool_]:
        emptied: NDArray[np.bool_] = (self.counts == 0) & ~self.design.any(axis=1)
        return emptied

    def fingerprint(self, key: bytes) -> bytes:
        """32 bytes that change with any row, design, id (where a table gave it) or position. Private, as is the key.

        They do not change with the order of a curve's rows.
        """
        return self.lanes(key).digest(key)

    def lanes(self, key: bytes, position: int = 0) -> Lanes:
        """What these curves, the first of them at `position`, add to the fingerprint of a whole."""
        from dpfda.curves.point_order import cut_curves

        parts = [self._part_lanes(first, last, key, position) for first, last in cut_curves(self.offsets)]
        return sum(parts[1:], parts[0])

    def _part_lanes(self, first: int, last: int, key: bytes, position: int) -> Lanes:
        """Of the curves from `first` to before `last`, with the points of each in the order of their bits."""
        from dpfda.curves.fingerprint import MOST_RANKED, sum_lanes
        from dpfda.curves.mapped import drop_pages
        from dpfda.curves.point_order import order_points

        offsets, points = self.offsets[first : last + 1], slice(self.offsets[first], self.offsets[last])
        x, y, rows = self.x[points], self.y[points], None if self.rows is None else self.rows[points]
        offsets = offsets - offsets[0]
        ranked = rows is None and not (np.diff(offsets) > MOST_RANKED).any()
        order = None if ranked else order_points(x, y, rows, offsets)
        if order is not None:
            x, y, rows = x[order], y[order], None if rows is None else rows[order]
        own = self.design[first:last]
        design = own if rows is None else (own, rows, self.changes[first:last])
        labels = None if self.labels is None else self.labels[first:last]
        lanes = sum_lanes(x, y, offsets, design, labels, key, position + first)
        for part in (self.x, self.y) if self.rows is None else (self.x, self.y, self.rows):
            drop_pages(part[points])  # or a mapped file would stay in memory as a whole
        return lanes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Curves):
            return NotImplemented
        names = ("x", "y", "offsets", "design", "rows")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        # Neither values nor counts: a repr ends up in logs.
        return f"Curves(n={self.n}, p={self.p})"


def _check_names(names: tuple[str, ...], columns: int) -> None:
    if names and (len(names) != columns or len(set(names)) != columns):
        raise InvalidInput(f"names must be {columns} different ones, one for each design column, got {names!r}.")


def with_intercept(design: ArrayLike) -> Floats:
    """`design` with a column of ones in front; refused if it has a column of ones already."""
    columns = _validate.numeric("design", design)
    columns = columns[:, None] if columns.ndim == 1 else columns
    if columns.ndim != 2:
        raise InvalidInput(f"design must have one or two dimensions, got shape {columns.shape}.")
    if np.any(np.all(columns == 1.0, axis=0)) and len(columns):
        raise InvalidInput(ONES_ALREADY)
    return np.column_stack([np.ones(len(columns)), columns])


def find_changes(rows: Floats, offsets: Integers) -> NDArray[np.bool_]:
    """Which curves have two points with different rows, bit by bit."""
    bits = np.ascontiguousarray(rows).view(np.int64)
    changes = np.zeros(len(rows) + 1, dtype=np.int64)  # how often the rows have changed up to each point
    np.cumsum((bits[1:] != bits[:-1]).any(axis=1), out=changes[1 : len(rows)])
    several = np.diff(offsets) > 1
    found = np.zeros(several.size, dtype=np.bool_)
    found[several] = changes[offsets[1:][several] - 1] > changes[offsets[:-1][several]]
    return found


def settle_design(design: Floats, rows: Floats, offsets: Integers) -> tuple[Floats, Floats | None]:
    """The two arrays of a design with a row for each point, as `Curves` has them; an empty curve keeps its vector."""
    changes, filled, settled = find_changes(rows, offsets), np.diff(offsets) > 0, design.copy()
    settled[filled] = rows[offsets[:-1][filled]]
    settled[changes] = 0.0
    return settled, rows if changes.any() else None


def _offsets(counts: NDArray[np.integer[Any]]) -> Integers:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])


def _curve_codes(ids: Iterable[Hashable]) -> tuple[Integers, int]:
    """For each row the rank of its id, and the number of different ids."""
    if not isinstance(ids, np.ndarray):
        if hasattr(ids, "to_numpy"):
            ids = ids.to_numpy()
        elif isinstance(ids, (str, bytes)) or not hasattr(ids, "__iter__"):
            raise InvalidInput("ids must be a sequence with one id for each row.")
    if isinstance(ids, np.ndarray) and ids.ndim != 1:
        raise InvalidInput(f"ids must be one-dimensional, got shape {ids.shape}.")
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu" and ids.size:
        low, span = int(ids.min()), int(ids.max()) - int(ids.min())
        if span < 4 * ids.size:  # a table of all values in between is cheaper than sorting
            signed = ids.dtype.kind == "i"  # small signed types could overflow in the difference
            shifted = ids.astype(np.int64) - low if signed else (ids - ids.dtype.type(low)).astype(np.int64)
            seen = np.bincount(shifted, minlength=span + 1) > 0
            return (np.cumsum(seen) - 1)[shifted], int(seen.sum())
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "biufmM":
        unique, codes = np.unique(ids, return_inverse=True)
        if unique.dtype.kind in "fmM" and bool(
            np.isnat(unique).any() if unique.dtype.kind in "mM" else np.isnan(unique).any()
        ):
            raise InvalidInput("ids must not be missing; drop those rows or give them an id.")
        return codes.astype(np.int64), int(unique.size)
    return _object_codes(ids.tolist() if isinstance(ids, np.ndarray) else list(ids))


def _stable_order(codes: Integers, n: int) -> Integers:
    """`np.argsort(codes, kind="stable")` for codes below n, by numpy's linear-time sort of 16-bit digits."""
    order = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(16, n.bit_length(), 16):
        order = order[np.argsort(((codes >> shift) & 0xFFFF).astype(np.uint16)[order], kind="stable")]
    return order


def _object_codes(ids: list[Hashable]) -> tuple[Integers, int]:
    try:
        unique = list(dict.fromkeys(ids))
    except TypeError:
        raise InvalidInput("ids must be hashable (numbers, text, tuples, ...); lists are not.") from None
    if any(_is_missing(value) for value in unique):
        raise InvalidInput("ids must not be missing; drop those rows or give them an id.")
    rank = {value: code for code, value in enumerate(_sort_if_possible(unique))}
    return np.fromiter(map(rank.__getitem__, ids), dtype=np.int64, count=len(ids)), len(unique)


def _sort_if_possible(unique: list[Any]) -> list[Any]:
    try:
        ordered = sorted(unique)
        # A partial order, as of sets, sorts without an error into a result that depends on the input's order.
        total = set(map(type, unique)) == {str} or all(a < b for a, b in itertools.pairwise(ordered))
    except TypeError:
        return unique
    return ordered if total else unique


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def _design_rows(design: ArrayLike, rows: int) -> Floats:
    array = _validate.numeric("design", design)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[0] != rows or array.shape[1] < 1:
        raise InvalidInput(f"design must have {rows} rows and at least one column, got shape {array.shape}.")
    return array


def _narwhals_frame(df: Any) -> Any:
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        return nw.from_native(df, eager_only=True)
    except DuplicateError:
        raise InvalidInput("df must have unique column names; rename the duplicates.") from None
    except TypeError:
        raise InvalidInput(
            f"df must be a pandas, polars or pyarrow table in memory, got {type(df).__name__}."
        ) from None


def _numeric_column(frame: Any, name: str) -> Floats:
    import narwhals as nw

    column = frame.get_column(name)
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        column = column.cast(nw.Float64)
    return _validate.numeric(name, column.to_numpy())
