from __future__ import annotations

import decimal
import sys
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpfda.curves.curves import Curves, with_intercept
from dpfda.errors import InvalidInput

NAN, INF = float("nan"), float("inf")


def small() -> Curves:
    return Curves.from_long(["b", "a", "b", "c"], [1, 2, 3, 4], [10, 20, 30, 40])


def test_rows_of_any_order_are_grouped_by_sorted_id_and_keep_their_order_within_a_curve() -> None:
    curves = Curves.from_long([7, 3, 7, 3, 5], [0.9, 0.2, 0.1, 0.4, 0.5], [1, 2, 3, 4, 5])
    assert curves.offsets.tolist() == [0, 2, 3, 5]
    assert curves.x.tolist() == [0.2, 0.4, 0.5, 0.9, 0.1]
    assert curves.y.tolist() == [2, 4, 5, 1, 3]
    assert curves.design.tolist() == [[1], [1], [1]]
    assert (curves.n, len(curves), curves.n_points, curves.p) == (3, 3, 5, 1)
    assert curves.owners.tolist() == [0, 0, 1, 2, 2]


U1, U2 = uuid.UUID(int=1), uuid.UUID(int=2)


@pytest.mark.parametrize(
    "ids",
    [
        ["p1", "p1", "p2"],
        np.array(["p1", "p1", "p2"]),
        np.array([b"1", b"1", b"2"]),
        [1, 1, 2],
        np.array([-100, -100, 100], dtype=np.int8),
        np.array([0, 0, 2**64 - 1], dtype=np.uint64),
        [2**80, 2**80, 2**80 + 1],
        [2**53, 2**53, 2**53 + 1],
        [-1, -1, 2**63],
        [0.5, 0.5, 1.5],
        [False, False, True],
        [(1, "a"), (1, "a"), (2, "a")],
        [U1, U1, U2],
        np.array(["2020-01-01", "2020-01-01", "2020-01-02"], dtype="M8[D]"),
        pd.Series(["x", "x", "y"], dtype="category"),
        pd.Series([1, 1, 2], dtype="Int64"),
        pl.Series(["x", "x", "y"]),
        [1, 1, "a"],
        [(1,), (1,), "a"],
        ["a", "a", "a\0"],
        [frozenset({1}), frozenset({1}), frozenset({2})],
        [decimal.Decimal(1), decimal.Decimal(1), decimal.Decimal(2)],
    ],
    ids=str,
)
def test_any_hashable_id_works(ids: object) -> None:
    curves = Curves.from_long(ids, [1, 2, 3], [4, 5, 6])  # type: ignore[arg-type]
    assert curves.counts.tolist() == [2, 1]
    assert curves.x.tolist() == [1, 2, 3]


def test_ids_without_an_order_stand_in_order_of_appearance() -> None:
    assert Curves.from_long(["a", 1, "a"], [1, 2, 3], [0, 0, 0]).x.tolist() == [1, 3, 2]
    sets = [frozenset({2}), frozenset({1}), frozenset({2})]
    assert Curves.from_long(sets, [1, 2, 3], [0, 0, 0]).x.tolist() == [1, 3, 2]


def test_many_curves_are_grouped_as_by_a_stable_sort() -> None:
    rng = np.random.default_rng(0)
    ids, x = rng.integers(0, 90_000, 200_000), rng.random(200_000)
    curves = Curves.from_long(ids, x, x)
    assert np.array_equal(curves.x, x[np.argsort(ids, kind="stable")])
    assert curves == Curves.from_long(ids * 10**9, x, x)


@pytest.mark.parametrize("bad", [NAN, INF, -INF, None])
def test_a_point_that_is_not_finite_is_dropped_and_the_curve_stays(bad: float | None) -> None:
    for x, y in (([1, bad, 3], [4, 5, 6]), ([1, 2, 3], [4, bad, 6])):
        curves = Curves.from_long(["a", "b", "c"], x, y)
        assert curves.counts.tolist() == [1, 0, 1]
        assert curves.design.tolist() == [[1], [1], [1]]
    assert Curves.from_long(["a"], [bad], [1]).n == 1


@pytest.mark.parametrize("bad", [NAN, INF])
def test_a_curve_with_a_design_that_is_not_finite_becomes_empty_with_a_zero_row(bad: float) -> None:
    design = [[1, 2], [1, bad], [1, bad], [1, 5]]
    curves = Curves.from_long(["a", "b", "b", "c"], [1, 2, 3, 4], [1, 2, 3, 4], design)
    assert curves.counts.tolist() == [1, 0, 1]
    assert curves.design.tolist() == [[1, 2], [0, 0], [1, 5]]


def test_a_design_of_one_dimension_is_one_column() -> None:
    curves = Curves.from_long(["a", "b", "a"], [1, 2, 3], [1, 2, 3], [5, 6, 5])
    assert curves.design.tolist() == [[5], [6]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a", "b"], [1], [1, 2]), "x must have length 2"),
        ((["a", "b"], [1, 2], [1]), "y must have length 2"),
        ((["a", "b"], [1, 2], ["u", "v"]), "y must be numeric"),
        ((["a", "b"], ["1", "2"], [1, 2]), "x must be numeric"),
        ((["a", "b"], [1, 2], [1, "v"]), "y must be numeric"),
        (([], [], []), "ids must hold at least one row"),
        ((["a", None], [1, 2], [1, 2]), "ids must not be missing"),
        (([1.0, NAN], [1, 2], [1, 2]), "ids must not be missing"),
        ((np.array([1.0, NAN]), [1, 2], [1, 2]), "ids must not be missing"),
        ((pd.Series(["a", pd.NA], dtype="string"), [1, 2], [1, 2]), "ids must not be missing"),
        ((pd.Series([1, pd.NA], dtype="Int64"), [1, 2], [1, 2]), "ids must not be missing"),
        ((np.array(["NaT", "2020"], dtype="M8[D]"), [1, 2], [1, 2]), "ids must not be missing"),
        (([pd.NaT, 1], [1, 2], [1, 2]), "ids must not be missing"),
        (([[1], [2]], [1, 2], [1, 2]), "ids must be hashable"),
        ((np.zeros((2, 2)), [1, 2], [1, 2]), "ids must be one-dimensional"),
        (("ab", [1, 2], [1, 2]), "ids must be a sequence"),
        ((3, [1, 2], [1, 2]), "ids must be a sequence"),
        ((["a", "b"], [[1], [2]], [1, 2]), "x must be one-dimensional"),
        ((["a", "b"], [1, 2], [1, 2], [1, 2, 3]), "design must have 2 rows"),
        ((["a", "b"], [1, 2], [1, 2], [[[1]], [[2]]]), "design must have 2 rows"),
        ((["a", "b"], [1, 2], [1, 2], ["u", "v"]), "design must be numeric"),
    ],
)
def test_a_mistake_is_named(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Curves.from_long(*arguments)  # type: ignore[arg-type]


def frames() -> list[object]:
    columns = {"who": ["b", "a", "b"], "age": [1, 2, 3], "value": [1.5, None, 3.5], "sex": [True, False, True]}
    nullable = pd.DataFrame(columns).astype({"who": "string", "age": "Int64", "value": "Float64", "sex": "boolean"})
    return [pd.DataFrame(columns), nullable, pl.DataFrame(columns), pa.table(columns)]


@pytest.mark.parametrize("frame", frames(), ids=["pandas", "pandas-nullable", "polars", "pyarrow"])
def test_every_kind_of_table_gives_the_same_curves(frame: object) -> None:
    curves = Curves.from_frame(frame, id="who", x="age", y="value", design=["sex"])
    assert curves.counts.tolist() == [0, 2]
    assert curves.y.tolist() == [1.5, 3.5]
    assert curves.design.tolist() == [[0], [1]]
    assert Curves.from_frame(frame, id="who", x="age", y="value").p == 1
    assert Curves.from_frame(frame, id="who", x="age", y="value", design="sex") == curves  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("frame", "columns", "message"),
    [
        (pd.DataFrame({"i": [1], "x": [1]}), {}, "y names the column 'y'"),
        (pd.DataFrame([[1, 2, 3]], columns=["i", "x", "x"]), {}, "unique column names"),
        (pd.DataFrame({"i": [], "x": [], "y": []}), {}, "at least one row"),
        (pl.DataFrame({"i": [1], "x": [1], "y": ["u"]}), {}, "y must be numeric"),
        (pl.DataFrame({"i": [1], "x": [1], "y": [1]}).lazy(), {}, "table in memory, got LazyFrame"),
        ({"i": [1]}, {}, "table in memory, got dict"),
        (pd.DataFrame({"i": [1], "x": [1], "y": [1]}), {"design": []}, "at least one column"),
        (pd.DataFrame({"i": [1], "x": [1], "y": [1]}), {"design": ["g"]}, "design names the column 'g'"),
        (pd.DataFrame({"i": [None], "x": [1], "y": [1]}), {}, "ids must not be missing"),
    ],
)
def test_a_mistake_in_a_table_is_named(frame: object, columns: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Curves.from_frame(frame, id="i", x="x", y="y", **columns)  # type: ignore[arg-type]


def test_selection_keeps_points_and_design_together() -> None:
    curves = Curves.from_long([1, 1, 2, 3], [1, 2, 3, 4], [5, 6, 7, 8], [[10], [10], [20], [30]])
    assert curves[::-1].x.tolist() == [4, 3, 1, 2]
    assert curves[::-1].design.ravel().tolist() == [30, 20, 10]
    assert curves[[0, 0]].x.tolist() == [1, 2, 1, 2]
    assert curves[-1].y.tolist() == [8]
    assert curves[curves.counts > 1].n == 1
    assert curves.take([2, 1]) == curves[np.array([2, 1])]
    assert curves[:] == curves
    assert [len(one) for one in curves] == [1, 1, 1]
    with pytest.raises(IndexError, match="3 curves"):
        curves[3]
    with pytest.raises(InvalidInput, match="at least one curve"):
        curves[:0]


def test_restrict_drops_points_but_no_curve() -> None:
    curves = small().restrict((2, 3))
    assert curves.counts.tolist() == [1, 1, 0]
    assert curves.x.tolist() == [2, 3]


def test_an_intercept_is_put_in_front_once() -> None:
    design = [[2], [3], [NAN], [2]]
    curves = Curves.from_long([1, 2, 3, 1], [1, 2, 3, 4], [1, 2, 3, 4], design).with_intercept()
    assert curves.design.tolist() == [[1, 2], [1, 3], [0, 0]]
    with pytest.raises(InvalidInput, match="column of ones already"):
        curves.with_intercept()
    with pytest.raises(InvalidInput, match="column of ones already"):
        small().with_intercept()
    assert with_intercept([4, 5]).tolist() == [[1, 4], [1, 5]]
    with pytest.raises(InvalidInput, match="one or two dimensions"):
        with_intercept(np.zeros((1, 1, 1)))


def test_arrays_are_copies_and_read_only() -> None:
    x = np.array([1.0, 2.0])
    curves = Curves.from_long(["a", "b"], x, x)
    x[0] = 99
    assert curves.x.tolist() == [1, 2]
    for array in (curves.x, curves.y, curves.offsets, curves.design):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_repr_shows_neither_values_nor_counts() -> None:
    assert repr(Curves.from_long(["secret"] * 3, [1, 2, 3], [0.123, 1, 1])) == "Curves(n=1, p=1)"


def test_equality_compares_values() -> None:
    assert small() == small()
    assert small() != small()[::-1]
    assert small() != 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(small())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([1], [1, 2], [0, 1], [[1]]), "y must have one entry"),
        (([1], [1], [0, 2], [[1]]), "offsets must run"),
        (([], [], [0], np.ones((0, 1))), "offsets must run"),
        (([1, 2], [1, 2], [0, 3, 2], [[1], [1]]), "offsets must not decrease"),
        (([1], [1], [0, 1], [1]), "design must have one row"),
        (([1], [1], [0, 1], [[NAN]]), "design must hold finite"),
        (([NAN], [1], [0, 1], [[1]]), "x must hold finite"),
    ],
)
def test_the_constructor_keeps_its_invariants(parts: tuple[object, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Curves(*parts)  # type: ignore[arg-type]


def test_scikit_fda_round_trip() -> None:
    skfda = pytest.importorskip("skfda")
    curves = Curves.from_long([1, 1, 2], [0.5, 1.0, 0.25], [1, 2, 3], [[4], [4], [5]])
    back = Curves.from_skfda(curves.to_skfda(), design=[4, 5])
    assert back == curves
    grid = skfda.FDataGrid([[1.0, np.nan], [3.0, 4.0]], [0.0, 1.0])
    from_grid = Curves.from_skfda(grid)
    assert from_grid.counts.tolist() == [1, 2]
    assert from_grid.y.tolist() == [1, 3, 4]
    with pytest.raises(InvalidInput, match="must not be empty"):
        Curves.from_long([1, 2], [1, 2], [1, NAN]).to_skfda()
    with pytest.raises(InvalidInput, match="FDataGrid or FDataIrregular"):
        Curves.from_skfda([1, 2])
    with pytest.raises(InvalidInput, match="design must have 2 rows"):
        Curves.from_skfda(grid, design=[1, 2, 3])
    line = pytest.importorskip("skfda.representation.basis").MonomialBasis(domain_range=(0, 1), n_basis=2)
    smooth = skfda.FDataBasis(line, [[1.0, 2.0], [3.0, -1.0]])
    with pytest.raises(InvalidInput, match="points must be given for an FDataBasis"):
        Curves.from_skfda(smooth)
    with pytest.raises(InvalidInput, match="points must be left out"):
        Curves.from_skfda(grid, points=[1.0])
    assert Curves.from_skfda(smooth, points=[0.0, 0.5]).y.tolist() == [1.0, 2.0, 3.0, 2.5]
    with pytest.raises(InvalidInput, match="one variable"):
        Curves.from_skfda(skfda.FDataGrid(np.ones((1, 2, 2)), [[0, 1], [0, 1]]))


def test_a_million_rows_are_grouped_without_a_python_loop() -> None:
    rng = np.random.default_rng(0)
    ids, x = rng.integers(0, 100_000, 1_000_000), rng.random(1_000_000)
    lines = 0

    def count(frame, event, argument):
        nonlocal lines
        lines += event == "line"
        return count

    sys.settrace(count)
    try:
        curves = Curves.from_long(ids, x, x)
    finally:
        sys.settrace(None)
    assert curves.n_points == 1_000_000
    assert lines < 10_000  # a loop over rows or curves runs through 100,000 lines at least
