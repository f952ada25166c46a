"""Tables, pictures and text of released curves."""

from __future__ import annotations

import importlib.util

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from laws import make_known

from dpfda import InvalidInput
from dpfda.inference import showing, summary, to_fdata


def test_frames_hold_estimates_and_limits() -> None:
    known = make_known(male=(0, 1), arm=["A", "B"])
    frame = known.effect("male").to_frame([0.1, 0.5], 0.9)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame) == ["x", "estimate", "standard_error", "lower", "upper"]
    np.testing.assert_array_equal(frame["lower"], known.effect("male").band(0.9, [0.1, 0.5])[0])
    tidy = known.tidy([0.1, 0.5])
    assert list(tidy["curve"]) == ["mean at male=0, arm=A"] * 2 + ["male"] * 2 + ["arm: B"] * 2
    assert known.to_frame([0.1]).equals(known.tidy([0.1]))
    assert known.names_ == ("intercept", "male", "arm: B")


def test_without_pandas_a_frame_is_of_polars_and_without_both_it_is_refused(monkeypatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pandas" else find(name))
    assert type(showing.make_frame({"x": [1.0]})).__module__.startswith("polars")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match="needs pandas or polars"):
        showing.make_frame({"x": [1.0]})


def test_pictures_show_curve_and_band() -> None:
    import matplotlib.pyplot as plt

    known = make_known(male=(0, 1), dose=(0, 2))
    axes = known.effect("male").plot()
    assert axes.get_xlabel() == "x"
    assert len(axes.collections) == 1
    again = known.curve_at(dose=1).plot(axes)
    assert again is axes
    assert len(axes.lines) == 2
    assert len(known.plot()) == 3
    assert make_known().plot() is not None
    plt.close("all")


def test_many_functions_are_small_multiples_under_their_names() -> None:
    import matplotlib.pyplot as plt

    known = make_known(a=(0, 1), b=(0, 1), c=(0, 1), d=(0, 1))
    axes = known.plot()
    assert [panel.get_title() for panel in axes] == ["mean at a=0, b=0, c=0, d=0", "a", "b", "c", "d"]
    assert all(panel.get_legend() is None for panel in axes)
    width, height = axes[0].figure.get_size_inches()
    assert (width, height) == (3 * 3.6, 2 * 2.7)
    plt.close("all")


def test_days_from_a_date_are_dates_everywhere() -> None:
    import matplotlib.pyplot as plt

    days, dates = make_known(male=(0, 1)), make_known(male=(0, 1))
    dates.x_origin = "2018-03-01"
    low, high = days.curve_.domain
    first, last = np.datetime64("2018-03-01") + np.array([np.floor(low), np.ceil(high)], dtype="timedelta64[D]")
    assert f"{first} to {last}" in repr(dates.curve_)
    assert f"{first} to {last}" in dates.summary()
    middle = np.datetime64("2018-03-01T12:00:00")
    assert dates.curve_([middle])[0] == days.curve_([0.5])[0]
    assert dates.predict_coefficients(["2018-03-01"]).tolist() == days.predict_coefficients([0.0]).tolist()
    assert dates.tidy([0.5])["x"].tolist() == [pd.Timestamp(middle)] * 2
    assert dates.curve_.to_frame([middle])["x"].tolist() == [pd.Timestamp(middle)]
    assert dates.curve_.mean_over("2018-03-01", "2018-03-02").estimate == days.curve_.mean_over().estimate
    assert "over 2018-03-01 to 2018-03-02" in dates.curve_.mean_over().name
    assert "at 2018-03-0" in repr(dates.curve_.argmax())
    assert "2018-03-01" in dates.curve_._repr_html_()
    axes = dates.curve_.plot()
    axes.figure.canvas.draw()
    assert "2018" in axes.xaxis.get_offset_text().get_text()
    plt.close("all")
    with pytest.raises(InvalidInput, match="numbers, or dates such as 2018-03-01"):
        dates.curve_(["tomorrow"])
    with pytest.raises(InvalidInput, match="x"):
        days.curve_([middle])


def test_text_says_what_was_estimated() -> None:
    known = make_known(male=(0, 1))
    known.estimand_ = summary.write_estimand("hdl", "age", (0, 150))
    known.warnings_ = ("the band is wide",)
    text = known.summary()
    assert "Every subject counts equally: the mean over subjects of hdl at each age" in text
    assert "Warning: the band is wide" in text
    assert "p: zero" in text
    assert "<table>" in known.effect("male")._repr_html_()
    assert "<script>" not in known.effect("male").rename("<script>")._repr_html_()
    assert summary.write_summary_html(known).startswith("<pre>")
    assert repr(known.effect("male")) == "ReleasedCurve('male', y over x in 0 to 1)"


@pytest.mark.parametrize(("basis", "size"), [("free-ends", 20), ("cosine", 12), ("bspline", 9), ("fourier", 7)])
def test_scikit_fda_gets_the_derivatives_too(basis, size) -> None:
    curve = make_known(basis, size, domain=(20.0, 80.0)).curve_
    there = to_fdata.curve_to_fdata(curve)
    x = np.linspace(20, 80, 77)
    np.testing.assert_allclose(there(x)[0, :, 0], curve(x), atol=1e-8)
    slopes = curve.forms[0].law.features((x - 20) / 60, 1) @ curve.coefficients
    np.testing.assert_allclose(curve.to_skfda().derivative()(x)[0, :, 0], slopes, atol=1e-6)
