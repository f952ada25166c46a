"""Every number of the default method: what it means, its unit, why it has this value, what another value would cost.

Units: y is scaled to [-1, 1] and x to [0, 1]; lengths of gradients are in units of their median unless said otherwise.
Numbers that a silo needs, too, are in `protocol/`: shares of the budget and clip factors in `plans/adaptive.py`, the filter
of the lengths in `length_filter.py` and `clip_radius.py`.

"Cost" says which page shows what another value costs. The pages run the method as it is, so for most numbers it is "not
measured"; "watch" then names the rows to run again after a change. What was seen while a value was chosen stands where it
is used, and is not repeated here: those runs are on no page.
"""

from __future__ import annotations

# ------------------------------------------------------------------------------------------------ pooling silos

# Variance of one curve's contribution to a statistic of round 0 (histogram cells, moments, squares: all of order 1).
# 1/3 is the variance of a uniform law on [-1, 1]; only the weights of silos depend on it.
# Cost: not measured; watch "5 silos, n 20-2000" in docs/utility.md.
SAMPLING_VARIANCE = 0.3

# ------------------------------------------------------------------------------------------------ level (round 0)

# Grid of the level over [-1, 1]: 256 steps, which every number of histogram bins (a power of 2 up to 128) divides.
# Cost: not measured; a grid only has to be finer than the posterior is wide.
LEVEL_POINTS = 257

# Grid of the sd of the curves' means, in y: from a quarter of a bin of the finest histogram to a law that fills the bounds.
# Cost: not measured; watch "y_bounds ten times wider" in docs/utility.md, where that sd is smallest.
MIN_SD_OF_MEANS, MAX_SD_OF_MEANS, SD_OF_MEANS_POINTS = 0.004, 0.7, 20

# Priors of the level (sd, in y) and of the sd of the means (its median, in y; sd 1 of the log): curves are in the
# middle of their bounds and fill some tenths of them. Cost: not measured; watch "y_bounds ten times wider".
TYPICAL_LEVEL, TYPICAL_SD_OF_MEANS = 0.2, 0.12

# By how much a cell's share may differ from the normal law's, as a share of it: curves' means are only roughly normal.
# Cost: not measured; watch "noise skewed" in docs/utility.md.
NORMAL_MODEL_ERROR = 0.1

# Share of curves added to a cell's before its sampling variance is taken: an empty cell is not known to be empty.
# Cost: not measured.
CELL_MARGIN = 0.02

# Prior probability that every curve has points; any other share from MIN_FILLED to 1 is as likely as any other.
# 191 shares are steps of 0.005. Cost: not measured.
ALL_FILLED, MIN_FILLED, FILLED_POINTS = 0.9, 0.05, 191

# The largest variance of a yes or no: p (1 - p) at p = 1/2.
MAX_SHARE_VARIANCE = 0.25

# ------------------------------------------------------------------------------------------------ design (round 0)

# Cells of [0, 1] whose masses are fitted: several for each wave of the largest basis. Cost: not measured.
DESIGN_CELLS = 96

# Prior sd of a moment of one cycle, falling with the frequency but from half a cycle on: 1 + 0.75 cos of a benchmark row
# is two sds off. Cost: not measured; watch "density 1 + 0.75 cos" and "density falls to zero" in docs/utility.md.
MOMENT_SD, MIN_CYCLES = 0.2, 0.5

# Prior sd of a cell's mass in units of the uniform design's mass: wide, its only task is to make the fit unique.
# Cost: not measured.
CELL_SD = 5.0

# Weight of the row "masses add up to 1" in the least squares problem: as good as exact. Cost: not measured.
TOTAL_WEIGHT = 1e3

# Steps of the non-negative solver for each cell before it gives up and negative masses are cut off (scipy's default is 3).
# Cost: not measured.
SOLVER_STEPS = 30

# What positivity leaves of the moments' sd. Cost: not measured; watch "density falls to zero" in docs/coverage.md.
POSITIVE_SD = 0.75

# Added to the eigenvalues of E[Phi Phi^T]: below it they are rounding and fit error, not data. Cost: not measured.
GRAM_MARGIN = 1e-4

# Directions of the moments' covariance with less than this share of the largest variance are left out. Cost: not measured.
MIN_MOMENT_VARIANCE = 1e-4

# A band takes an eigenvalue of E[Phi Phi^T] to be this many sds smaller, and counts it as thin below MAX_THIN (1 is a
# uniform design). Cost: not measured; watch "density falls to zero" in docs/coverage.md.
THIN_SDS, MAX_THIN = 2.0, 0.3

# Silos have designs of their own where a chi-square statistic is this many sds above its mean: equal designs are hardly
# ever taken for different (tests/unit/methods/test_silo_designs.py). Cost: not measured; watch "10 silos of 200".
CLEARLY_DIFFERENT = 3.0

# ------------------------------------------------------------------------------------------------ covariates (rounds 0, 1)

# Prior of E G^2 for a covariate in [-1, 1]: a uniform one has 1/3. Cost: not measured; watch the VCM rows of
# docs/utility.md.
COVARIATE_SQUARE, COVARIATE_SQUARE_SD = 0.33, 0.2

# Limits of E G^2: below, a covariate is all but constant zero and its scale would blow up. Cost: not measured.
MIN_COVARIATE_SQUARE, MAX_COVARIATE_SQUARE = 0.003, 1.0

# What a silo subtracts from G^2 before it bounds it (the middle of [0, 1]).
COVARIATE_CENTRE = 0.5

# Prior sd of an entry of E[G G^T] in units of the column sizes (a correlation). Cost: not measured; watch "VCM d=5,
# correlated design".
CORRELATION_SD = 0.4

# Smallest eigenvalue of E[G G^T] in those units: columns are never quite dependent. Cost: not measured.
MIN_COVARIATE_EIGENVALUE = 0.05

# How E[G G^T | x] may wave along x: prior sd of the constant wave, in those units and of the whole matrix; each of the
# WAVES further ones has WAVE_DECAY times the sd of the one before. Cost: not measured; watch "VCM" rows of
# docs/utility.md and docs/coverage.md.
DEPENDENCE, WAVE_DECAY, WAVES = 0.3, 0.7, 3

# ------------------------------------------------------------------------------------------------ gradients

# Variance of a random curve's harmonic k in units of its level's: HARMONIC_VARIANCE k^-2. A smooth curve is mostly level.
# Cost: not measured; watch "VCM d=2, random curves" and, for the forecast, the table "Expected before spending".
HARMONIC_VARIANCE = 0.25

# How much of a gradient's covariance is like such a smooth curve; the other half is like independent noise.
# Assumed for the first rounds only, measured later. Cost: not measured; watch "one point each" and "60 points each".
SMOOTH_SHARE = 0.5

# Smallest eigenvalue of E[Phi Phi^T] that the coordinates for clipping see. Cost: not measured; watch "density falls to
# zero".
MIN_STEADY = 0.2

# E L^2 of whitened gradients before it is measured, in medians squared: chi_4 has 1.19.
# Cost: not measured; it serves until the last round but one measures it.
MEAN_SQUARE_LENGTH = 1.2

# Lengths are like chi_nu: grid of nu, from heavier tails than one point per curve gives to nearly constant lengths; sd
# of log nu around the typical shape of `protocol.length_filter`. Cost: not measured; watch "one point each" and
# docs/coverage.md.
MIN_LENGTH_SHAPE, MAX_LENGTH_SHAPE, LENGTH_SHAPES, LENGTH_SHAPE_LOG_SD = 0.6, 20.0, 24, 1.0

# By how much E min(L, cut)^2 may differ from that of chi_nu, as a share of it. Cost: not measured.
LENGTH_MODEL_ERROR = 0.02

# Relative sd of an entry of the assumed covariance of gradients, against which the measured one is weighed. Cost: not
# measured.
ASSUMED_COVARIANCE_ERROR = 0.5

# Limits against noise: the measured trace counts as at least this share of the fitted one when it is scaled to it, and
# eigenvalues as at least this share of their mean. Cost: not measured.
MIN_TRACE, MIN_GRADIENT_EIGENVALUE = 0.3, 0.1

# ------------------------------------------------------------------------------------------------ rounds

# Added to the prior sd of the level, in y: a histogram of one full cell says nothing of what is inside it.
# Cost: not measured; watch "y_bounds ten times wider".
LEVEL_MARGIN = 0.02

# Sd of the log of the first median length, next to that of the histogram's fit: the model behind it is rough.
# Cost: not measured; watch "hopeless budget" in docs/utility.md, where the counts say least.
START_LENGTH_SD = 0.5

# Points of [0, 1] at which an iterate is kept within the bounds of y, and what counts as no deviation there.
BOUND_POINTS, MIN_DEVIATION = 101, 1e-9

# Squared relative error of the Jacobian of clipping, beyond what the counts leave open: rounds that began far away count
# less. Cost: not measured; watch "eps 8" and "eps 4", where noise does not hide it.
JACOBIAN_ERROR = 0.1

# Smallest eigenvalue of that Jacobian: what is divided by it is not blown up further. Cost: not measured.
MIN_JACOBIAN = 0.1

# Times the rounds are combined; each pass knows better how far every round was from the end.
# Cost: not measured; more passes cost time (docs/performance.md).
ESTIMATE_PASSES = 4

# Size of the prior (see below) that the first of those passes starts from: wider than most curves. Cost: not measured.
FIRST_PASS_SIZE = 0.2

# ------------------------------------------------------------------------------------------------ prior of the coefficients

# Sizes that the prior is averaged over: sd of a first-harmonic coefficient in y, from a flat curve (a five-hundredth of
# the half width) to one that fills the bounds. Cost: not measured; watch "flat truth" and "bump" in docs/utility.md.
MIN_PRIOR_SIZE, MAX_PRIOR_SIZE, PRIOR_SIZES = 0.002, 1.5, 14

# The size with the best odds: most curves span some tenth of their bounds. Cost: not measured; watch "y_bounds ten
# times wider".
TYPICAL_PRIOR_SIZE = 0.08

# Prior sd of the level of a covariate's function, in sizes: it may well be none. Cost: not measured; watch the VCM rows.
COVARIATE_LEVEL = 2.0

# How much of the prior of cosine coefficients is coherent, so that curves go on with their slope where data end.
# Cost: not measured; watch "density falls to zero" in both pages.
COHERENT_SHARE = 0.5

# Eigenvalues of a matrix below this share of its largest are lifted to it before a power is taken.
MIN_EIGENVALUE_RATIO = 1e-12

# ------------------------------------------------------------------------------------------------ bands

# Functions beyond the basis that a band accounts for; coefficients fall like k^-alpha, so the tail after them is small.
# Cost: not measured on a page; docs/coverage.md has the coverage with it ("mean mu_2, cosine").
TAIL_FUNCTIONS = 24

# A band's prior is this many times as wide as the estimate's, and its size at least MIN_BAND_SIZE (in y).
# Cost: not measured on a page; docs/coverage.md has the coverage with it.
BAND_PRIOR_FACTOR, MIN_BAND_SIZE = 2.5, 0.02

# Factor of a band's covariance where clipping left gradients whole. Cost: not measured; watch docs/coverage.md, n = 5000.
BAND_INFLATION = 1.05

# Passes from the widest prior down to what a band leaves open. Cost: not measured.
BAND_PASSES = 4

# ------------------------------------------------------------------------------------------------ skewness

# Prior sds of the shift that clipping made, in radii: chi-square noise at one point per curve shifts by 0.07. The
# smallest stands for "not skewed" and has about half of the prior weight. Cost: not measured; watch the rows "noise
# skewed" (gain) and "noise t3" (what it costs where nothing is skewed) in docs/utility.md.
MIN_SHIFT, MAX_SHIFT, SHIFTS, NO_SHIFT_ODDS = 0.002, 0.1, 16, 15.0

# In medians: lengths beyond the radius fall off by half; what lies beyond the reach is extrapolated. Cost: not measured.
TAIL_HALVING = 1.0

# ------------------------------------------------------------------------------------------------ forecast

# The sd that curves, noise and signal are each taken to have where nobody guesses one: what the method itself expects of
# curves' means. Cost: the table "Expected before spending" of docs/utility.md is for true values; guesses are not measured.
GUESSED_SD = TYPICAL_SD_OF_MEANS

# Gauss points over [0, 1]; functions that stand for infinitely many; points and upper end (in sds of chi) of the integral
# over clipped lengths. Cost: not measured.
QUADRATURE_POINTS, ALL_FUNCTIONS, LENGTH_POINTS, LENGTH_REACH = 256, 400, 2001, 12.0

# Sizes of the prior that a forecast chooses from (it takes the best instead of averaging, so the grid is finer), and the
# smallest size that a guess may mean. Cost: not measured.
FORECAST_SIZES, MIN_GUESSED_SIZE = 28, 1e-6

# Passes between "what is left open" and "what a wrong design does to it". Cost: not measured.
FORECAST_PASSES = 3

# Smallest eigenvalue of a guessed design's E[Phi Phi^T] that is believed in. Cost: "density falls to zero" in the
# table "Expected before spending" of docs/utility.md (0.79 of the measured error with this value); others not measured.
MIN_GUESSED_GRAM = 0.02

# Variance that a gradient has even if curves are guessed to be without any: keeps matrices definite.
MIN_GUESSED_VARIANCE = 1e-9
