"""Whatever a subject's rows hold, cells and products of its covariates move the sums by what is declared."""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.basis import Cosine
from dpfda.curves.curves import settle_design
from dpfda.privacy.cones import HistogramsBound
from dpfda.protocol.statistics import COVARIATE_CELLS, CovariateMoments, Dimensions
from dpfda.silo.prepared import PreparedCurves
from dpfda.silo.release_statistics import find_covariate_cells, weighted_products
from dpfda.silo.sums import PlaceCounts, RowSum

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
@given(st.lists(SUBJECT, min_size=1, max_size=5), SUBJECT, st.sampled_from([1e-9, 1e-3, 1.0, 700.0]), st.data())
@np.errstate(all="ignore")
def test_replacing_a_subject_moves_sums_within_their_sensitivity(subjects, other, scale, data) -> None:
    place = data.draw(st.integers(0, len(subjects) - 1))
    neighbours = [*subjects[:place], other, *subjects[place + 1 :]]
    counts, products = HistogramsBound(2, COVARIATE_CELLS), CovariateMoments(False)
    rows = partial(weighted_products, intercept=False, centre=np.array([0.0, 0.2]), scale=np.array([1.0, scale]))
    ellipsoid = products.bound(Dimensions(2, Cosine(3)))
    cells = PlaceCounts(partial(find_covariate_cells, intercept=False), counts)
    for request, bound in ((cells, counts), (RowSum(rows, ellipsoid), ellipsoid)):
        one, two = (request.prepared_words(curves_of(each)) for each in (subjects, neighbours))
        sums = [bound.total(words, len(subjects)) for words in (one, two)]
        change = sums[0].total - sums[1].total
        assert np.isfinite(change).all()
        alone = sum(request.prepared_words(curves_of([each])) for each in subjects)
        assert (alone == one).all(), "what a subject adds depends on the others"
        assert sums[0].sensitivity.whitened_norm(change) <= 1 + 1e-12
