"""Whatever a subject's rows hold, means of squares and products of its design move the sums by what is declared."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.curves.curves import settle_design
from dpfda.privacy.clipping import EntrywiseBound
from dpfda.privacy.cones import OuterProductBound
from dpfda.silo.prepared import PreparedCurves
from dpfda.silo.release_statistics import centred_squares
from dpfda.silo.sums import DesignProductSum, RowSum

ENTRY = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e308, -1e308, 1e-300, np.nan, np.inf, 5e-324]))
ROW = st.tuples(ENTRY, ENTRY).map(list)
SUBJECT = st.lists(ROW, min_size=0, max_size=5)


def curves_of(subjects) -> PreparedCurves:
    counts = [len(rows) for rows in subjects]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = np.array([row for rows in subjects for row in rows], dtype=float).reshape(-1, 2)
    design = settle_design(np.zeros((len(subjects), 2)), rows, offsets)
    return PreparedCurves(np.full(len(rows), 0.5), np.zeros(len(rows)), offsets, *design)


@settings(max_examples=300, deadline=None)
@given(st.lists(SUBJECT, min_size=1, max_size=5), SUBJECT, st.sampled_from([1e-3, 1.0, 700.0]), st.data())
@np.errstate(all="ignore")
def test_replacing_a_subject_moves_sums_within_their_sensitivity(subjects, other, radius, data) -> None:
    place = data.draw(st.integers(0, len(subjects) - 1))
    neighbours = [*subjects[:place], other, *subjects[place + 1 :]]
    n, products, half = len(subjects), OuterProductBound(2, radius), EntrywiseBound([0.5])
    requests = [(DesignProductSum(np.array([1.0, 0.7]), products), products), (RowSum(centred_squares, half), half)]
    for request, bound in requests:
        one, two = (request.prepared_words(curves_of(each)) for each in (subjects, neighbours))
        sums = [bound.total(words, n) for words in (one, two)]
        change = sums[0].total - sums[1].total
        assert np.isfinite(change).all()
        alone = sum(request.prepared_words(curves_of([each])) for each in subjects)
        assert (alone == one).all(), "what a subject adds depends on the others"
        limit = np.sqrt(2) * radius**2 if bound is products else 1.0
        assert np.linalg.norm(change) <= limit * (1 + 1e-9)
