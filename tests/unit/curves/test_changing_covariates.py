"""Covariates that change within a subject or are missing at some visits: in memory, and from tables of any size."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda import Curves, PrivateVaryingCoefficients, Silo
from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves
from dpfda.curves.tables.filling import fill_down
from dpfda.errors import InvalidInput

NAN = float("nan")
KEY = b"k" * 32
DOSE = Covariate("dose", bounds=(0, 10))
ARM = Covariate("arm", levels=("placebo", "drug"))


def reading(*covariates, **how) -> Reading:
    return Reading(Domain(0, 1), (-9.0, 9.0), id="pid", x="time", y="y", covariates=covariates, **how)


def load(frame: pl.DataFrame, tmp_path, how: Reading, rows_at_once: int = 1 << 20):
    frame.write_parquet(tmp_path / "t.parquet")
    return load_curves(find_source(str(tmp_path / "t.parquet")), how, rows_at_once=rows_at_once)


# in memory


def test_rows_follow_their_points_through_every_selection() -> None:
    ids, x = [2, 1, 2, 1, 3], [0.2, 0.1, 0.4, 0.3, 0.5]
    curves = Curves.from_long(ids, x, x, [[5], [7], [6], [7], [8]])
    assert curves.changes.tolist() == [False, True, False]
    assert curves.design.ravel().tolist() == [7, 0, 8]
    assert curves.rows is not None
    assert curves.rows.ravel().tolist() == [7, 7, 5, 6, 8]
    assert curves[::-1].rows.ravel().tolist() == [8, 5, 6, 7, 7]
    assert curves[[0, 2]].rows is None
    assert curves[[0, 2]].design.ravel().tolist() == [7, 8]
    first = curves.restrict((0.0, 0.3))
    assert first.rows is None
    assert first.design.ravel().tolist() == [7, 5, 8]
    more = curves.with_intercept()
    assert more.rows.tolist() == [[1, 7], [1, 7], [1, 5], [1, 6], [1, 8]]
    assert more.design.tolist() == [[1, 7], [0, 0], [1, 8]]
    assert more.constant_columns().tolist() == [True, False]
    assert more == Curves(curves.x, curves.y, curves.offsets, np.zeros((3, 2)), rows=more.rows)
    assert more != curves
    with pytest.raises(ValueError, match="read-only"):
        curves.rows[0] = 1


def test_a_point_without_covariate_goes_and_the_others_stay() -> None:
    design = [[1, 5], [1, NAN], [1, 6], [1, np.inf], [1, NAN], [1, 8]]
    curves = Curves.from_long([1, 1, 1, 2, 2, 3], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, NAN], design)
    assert curves.counts.tolist() == [2, 0, 0]
    assert curves.rows.tolist() == [[1, 5], [1, 6]]
    assert curves.design.tolist() == [[0, 0], [0, 0], [1, 8]]  # of the third only y is missing


@pytest.mark.parametrize("rows", [[[1.0]], [[1.0], [NAN], [2.0]], [[1.0, 2.0]] * 3])
def test_rows_that_do_not_fit_are_refused(rows) -> None:
    with pytest.raises(InvalidInput, match="rows must hold 1 finite numbers for each of 3 points"):
        Curves([1, 2, 3], [1, 2, 3], [0, 3], [[1]], rows=rows)


def test_the_fingerprint_covers_the_row_of_every_point() -> None:
    x = np.linspace(0, 1, 6)
    offsets, rows = [0, 2, 4, 6], np.arange(18.0).reshape(6, 3)
    prints = {Curves(x, x, offsets, np.zeros((3, 3)), rows=rows).fingerprint(KEY)}
    for place in np.ndindex(6, 3):
        changed = rows.copy()
        changed[place] = np.nextafter(changed[place], 99)
        prints.add(Curves(x, x, offsets, np.zeros((3, 3)), rows=changed).fingerprint(KEY))
    swapped = rows[[1, 0, 2, 3, 4, 5]]
    prints.add(Curves(x, x, offsets, np.zeros((3, 3)), rows=swapped).fingerprint(KEY))
    prints.add(Curves(x, x, offsets, rows[::2]).fingerprint(KEY))
    prints.add(Curves(x, x, offsets, np.zeros((3, 3))).fingerprint(KEY))
    assert len(prints) == 1 + 18 + 1 + 1 + 1


def test_the_fingerprint_of_parts_adds_up_whether_designs_change_in_a_part_or_not() -> None:
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.random((4, 2)), 3, axis=0)
    rows[4] = 9.0
    curves = Curves(rng.random(12), rng.random(12), [0, 3, 6, 9, 12], np.zeros((4, 2)), rows=rows)
    parts = [curves[:1], curves[1:2], curves[2:]]
    assert [part.design_changes for part in parts] == [False, True, False]
    lanes = [part.lanes(KEY, position) for part, position in zip(parts, (0, 1, 2), strict=True)]
    assert (lanes[0] + lanes[1] + lanes[2]).digest(KEY) == curves.fingerprint(KEY)


# a fit


def visits(n: int = 60) -> Curves:
    rng = np.random.default_rng(1)
    ids, x = np.repeat(np.arange(n), 4), rng.random(4 * n)
    dose = rng.integers(0, 2, 4 * n).astype(float)
    y = np.clip(x + dose * (1 - x) + rng.normal(0, 0.2, 4 * n), -2, 2)
    return Curves.from_long(ids, x, y, dose[:, None]).with_intercept()


def test_a_fit_takes_a_design_that_changes_and_the_same_bits_where_it_does_not() -> None:
    model = PrivateVaryingCoefficients(
        domain=(0, 1), y_bounds=(-2, 2), design_bounds=[(0, 1)], epsilon=8, delta=1e-5, random_state=1
    )
    fit = model.fit(visits())
    assert np.isfinite(fit.predict_coefficients([0.1, 0.9])).all()
    steady = visits()
    steady = Curves(steady.x, steady.y, steady.offsets, steady.rows[steady.offsets[:-1]])
    written_out = Curves.of_checked_arrays(
        steady.x, steady.y, steady.offsets, steady.design, rows=steady.point_design.copy()
    )
    one, other = (model.fit(each).predict_coefficients([0.1, 0.5]) for each in (steady, written_out))
    assert (one == other).all()


def test_the_published_method_refuses_a_design_that_changes_before_anything_is_spent() -> None:
    silo = Silo(visits(), epsilon=1, delta=1e-3, random_state=1)
    model = PrivateVaryingCoefficients(domain=(0, 1), y_bounds=(-2, 2), design_bounds=[(0, 1)], method="published")
    with pytest.raises(InvalidInput, match="must not change within a subject for the published method"):
        model.fit(silo)
    assert silo.ledger.spent().epsilon == 0


def test_an_intercept_that_changes_is_refused() -> None:
    curves = Curves.from_long([1, 1, 2], [0.1, 0.2, 0.3], [0, 0, 0], [[1, 0], [2, 0], [1, 1]])
    model = PrivateVaryingCoefficients(domain=(0, 1), y_bounds=(-2, 2), design_bounds=[(0, 1)], epsilon=1, delta=1e-5)
    with pytest.raises(InvalidInput, match="constant 1 in column 0"):
        model.fit(curves)


# tables


def table(rows: int = 4000, subjects: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    pid = 1 + rng.integers(0, subjects, rows)
    dose = np.where(pid % 3 == 0, pid % 7, rng.integers(0, 9, rows)).astype(float)
    dose[rng.random(rows) < 0.1] = NAN
    arm = np.where(rng.random(rows) < 0.05, None, np.where(rng.random(rows) < 0.5, "placebo", "drug"))
    frame = pl.DataFrame(
        {"pid": pid, "time": rng.random(rows) * 1.1, "y": rng.normal(size=rows), "dose": dose, "arm": arm}
    )
    return frame.with_columns(pl.col("dose").fill_nan(None))


@pytest.mark.parametrize("fill", [(), ("dose",), ("arm", "dose")])
@pytest.mark.parametrize("subjects", [1, 2, 300])
def test_rows_on_disk_give_the_arrays_of_rows_in_memory(subjects, fill, tmp_path) -> None:
    how = reading(DOSE, ARM, fill_down=fill)
    whole, parts = (load(table(4000, subjects), tmp_path, how, at_once) for at_once in (1 << 20, 100))
    assert isinstance(parts.curves.x, np.memmap)
    assert whole.curves.design_changes
    assert whole.curves == parts.curves
    assert whole.curves.fingerprint(KEY) == parts.curves.fingerprint(KEY)
    assert whole.owner_notes == parts.owner_notes


def test_rows_are_written_from_the_first_change_on_and_for_what_was_before(tmp_path) -> None:
    frame = table().with_columns(dose=pl.when(pl.col("pid") < 290).then(3.0).otherwise(pl.col("dose")))
    whole, parts = (load(frame, tmp_path, reading(DOSE), at_once) for at_once in (1 << 20, 100))
    assert whole.curves.changes.sum() < 11
    assert whole.curves == parts.curves


FEW = pl.DataFrame(
    {
        "pid": [1, 1, 1, 2, 2, 3],
        "time": [0.3, 0.1, 0.2, 0.1, 0.2, 0.5],
        "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "dose": [None, 5.0, None, None, 7.0, None],
        "arm": ["drug", "drug", "other", "placebo", None, "drug"],
    }
)


def test_a_blank_covariate_drops_the_row_and_the_owner_reads_which_one_dropped_how_many(tmp_path) -> None:
    loaded = load(FEW, tmp_path, reading(DOSE))
    assert loaded.curves.counts.tolist() == [1, 1, 0]
    assert "4 of 6 rows have x and y, but 'dose' is missing: left out" in loaded.owner_notes
    assert "1 of 3 subjects has no usable point and contributes nothing" in loaded.owner_notes


def test_blanks_are_filled_down_in_the_order_of_x_by_name_only(tmp_path) -> None:
    curves = load(FEW, tmp_path, reading(DOSE, fill_down="dose")).curves
    assert curves.counts.tolist() == [3, 1, 0]
    assert curves.point_design[:, 1].tolist() == [5, 5, 5, 7]


def test_an_entry_that_is_no_level_is_no_blank(tmp_path) -> None:
    loaded = load(FEW, tmp_path, reading(ARM, fill_down=("arm",)))
    assert loaded.curves.counts.tolist() == [2, 2, 1]
    assert loaded.curves.point_design[:, 1].tolist() == [1, 1, 0, 0, 1]
    assert "1 of 6 rows has x and y, but 'arm' is missing or not in --levels: left out" in loaded.owner_notes


def test_where_rows_never_refuse_a_changing_covariate_spoils_a_subject_for_the_published_method_only(tmp_path) -> None:
    frame = FEW.with_columns(dose=pl.Series([1.0, 2.0, 2.0, 3.0, None, 4.0]))
    quiet = {"rows": "never refuse"}
    assert load(frame, tmp_path, reading(DOSE, **quiet)).curves.counts.tolist() == [3, 1, 1]
    loaded = load(frame, tmp_path, reading(DOSE, one_design=True, **quiet))
    assert loaded.curves.counts.tolist() == [0, 1, 1]
    assert not loaded.curves.design_changes
    assert any("1 of 3 subjects has rows that cannot be right" in note for note in loaded.owner_notes)


def test_text_in_a_covariate_spoils_the_subject_where_rows_never_refuse(tmp_path) -> None:
    frame = FEW.with_columns(dose=pl.Series(["1", "n.d.", "2", "3", "", "4"]))
    assert load(frame, tmp_path, reading(DOSE, rows="never refuse")).curves.counts.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"fill_down": ("weight",)}, "--fill-down names 'weight'"),
        ({"fill_down": ("dose",), "wide": True, "x": None, "y": None}, "--fill-down needs one row per visit"),
    ],
)
def test_what_cannot_be_filled_is_refused(how, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Reading(Domain(0, 1), (0, 1), **({"id": "pid", "x": "time", "y": "y", "covariates": (DOSE,)} | how))


ENTRY = st.one_of(st.none(), st.integers(0, 3))
ROWS = st.lists(st.tuples(st.integers(0, 3), ENTRY, ENTRY, ENTRY), min_size=1, max_size=20)


@settings(max_examples=200, deadline=None)
@given(ROWS)
def test_filling_down_looks_at_one_subject_only(rows) -> None:
    """Against the rule in words, row by row; and whatever the order of the rows."""
    codes, x, y, value = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    filled = fill_down(codes.astype(np.int64), x, y, value[:, None], [slice(0, 1)]).ravel()
    late_x, late_y = (np.where(np.isnan(column), np.inf, column) for column in (x, y))
    for row in range(len(rows)):
        mine = [other for other in range(len(rows)) if codes[other] == codes[row] and not np.isnan(value[other])]
        before = [k for k in mine if late_x[k] <= late_x[row]]
        last = value[max(before, key=lambda k: (late_x[k], late_y[k], value[k]))] if before else NAN
        assert np.array_equal([filled[row]], [last if np.isnan(value[row]) else value[row]], equal_nan=True)
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    again = fill_down(codes[order].astype(np.int64), x[order], y[order], value[order][:, None], [slice(0, 1)]).ravel()
    assert np.array_equal(again, filled[order], equal_nan=True)
