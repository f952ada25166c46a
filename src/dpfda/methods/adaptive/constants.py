"""Every number of the default method: what it means, its unit, why it has this value, what another value would cost.

Units: y is scaled to [-1, 1] and x to [0, 1]; lengths of gradients are in units of the root mean square that was expected
of them; "octaves" are log2 of such lengths. Sizes of the prior are in units of `State.unit`, the sd of the curves' levels.
Shares of the budget are in `protocol/plans/adaptive.py`.

"Cost" has figures of two prototypes where there are any. They are numpy programs in which parts of the method were worked
out before it was written here; they are not in this repository, and they are not the method: bases, designs and some values
differ. "Core" (law of lengths, radius, bias; 40 to 60 repetitions) and "basis" (functions, prior, design, bands; 4 to 30
repetitions) had their own test problems: symmetric, lognormal, growing (skewness that grows with x), rare (2 to 6% ones),
bounds x100 (a hundred times too wide), growth, line, sin, peak, steep. "Ratio" is squared error over that of least squares;
coverage is that of simultaneous 95% bands. Where the value here is not the prototype's, the comment says so. "Not measured"
means that nobody tried; "watch" names the rows of docs/utility.md and docs/coverage.md to run again after a change.
"""

from __future__ import annotations

# ------------------------------------------------------------------------------------------------ pooling silos

# Variance of one curve's contribution to a statistic of round 0 (cells, shares, moments: all of order 1). 1/3 is that of
# a uniform law on [-1, 1]. It decides the weights of silos, and is added to the noise of released moments.
# Cost: not measured; watch "5 silos, n 20-2000".
SAMPLING_VARIANCE = 0.3

# ------------------------------------------------------------------------------------------------ level (round 0)

# Grid of the level over [-1, 1]: 256 steps, which every number of histogram bins (a power of 2 up to 256) divides.
# Cost: not measured; a grid only has to be finer than the posterior is wide.
LEVEL_POINTS = 257

# Grid of the sd of the curves' means, in y: from a quarter of a bin of the finest histogram to a law that fills the bounds.
# Cost: not measured; watch "y_bounds ten times wider", where that sd is smallest.
MIN_SD_OF_MEANS, MAX_SD_OF_MEANS, SD_OF_MEANS_POINTS = 0.002, 0.7, 24

# Priors of the level (its sd, in y) and of the sd of the means (its median, in y; sd 1 of the log): weak ones, curves are
# somewhere around the middle of their bounds and fill some tenths of them.
# Cost: not measured; watch "y_bounds ten times wider".
TYPICAL_LEVEL, TYPICAL_SD_OF_MEANS = 0.4, 0.12

# By how much a cell's share may differ from the normal law's, as a part of it: curves' means are only roughly normal.
# The core prototype had the same value. Cost: not measured; watch "noise skewed".
NORMAL_MODEL_ERROR = 0.15

# Share of curves added to a cell's before its sampling variance is taken: an empty cell is not known to be empty.
# Cost: not measured.
CELL_MARGIN = 0.02

# Prior probability that every curve has points; any other share from MIN_FILLED to 1 is as likely as any other.
# 191 shares are steps of 0.005. Cost: not measured.
ALL_FILLED, MIN_FILLED, FILLED_POINTS = 0.9, 0.05, 191

# Where visits weigh the same: points of the grid of a curve's mean weight, and by how much silos may differ in it, in units
# of the largest possible. Cost: not measured.
WEIGHT_POINTS, WEIGHT_SPREADS = 201, (0.0, 0.03, 0.1, 0.3)

# From which relative sd of the mean weight on the result says that it is vague. Cost: none, a notice.
VAGUE_WEIGHT = 0.25

# The largest variance of a yes or no: p (1 - p) at p = 1/2. Cost: none, it is a bound.
MAX_SHARE_VARIANCE = 0.25

# Least value of `State.unit`, in y, of which the bounds are -1 and 1. Where nearly all subjects have the same value, a unit
# that followed them would shrink from round to round, and everybody else would be out of sight. Cost: with 1e-4 in round 0
# and no limit later, 2% of subjects who are always at the other bound (n = 2000, eps 4) were held by 2 of 20 bands; with
# 1e-3 bounds 100 times too wide had a sampling covariance twice too large and bands of 10.8 RMSEs for 9.9 (n = 1000, eps 1),
# and 3% of such subjects (n = 2000) were held by 23 of 24 bands at eps 1 and 4, with 3e-4 by 23 and 24.
LEAST_UNIT = 3e-4

# How far away, in y, subjects may be whom the noise of the histogram of levels hides: their share is about its sd. Cost:
# with 0, 2% of subjects at the other bound (n = 2000, eps 1) were held in 70% of 20 fits, with 3 in 90%; where values are
# not at the bounds it would widen bands from 6.3 to 8.3 RMSEs (symmetric, n = 1000, eps 1).
LEVEL_DOUBT = 3.0

# The same doubt where the level is near a bound: all of it where the bound is within 2^1 sds of the curves' means, none from
# 2^2 on. A normal law fitted to a spike of zeros hides who is not zero. Cost: without it 12 and 13 of 16 bands held the mean
# of 10% who carry all events (n = 300, eps 1 and 2) for 14 and 13, and 15 and 13 that of 15% above zero (n = 500) for 16
# and 14; bands of 30% above zero (n = 250, eps .5) had .81 of their width.
NEAR_LEVEL = (1.0, 2.0)

# How sure it must be that all values are at a bound for gradients to be left unclipped, and by which factor gradients of
# single curves may be longer than the length of all of them together. Cost: without it, see LEAST_UNIT, at eps 1 no band
# held the mean; a factor of 1.2 instead of 2 held 70% for 95% (eps 4) with RMSEs of .021 for .031 of rare events, eps .5.
TWO_VALUED, LONGER_CURVES = 0.7, 2.0

# Where the share of subjects that have points in the domain, less so many of its sds, is below this, the band is that of a
# level nobody knows, and the expected error has this sd of the level more (1 is half of the bounds' width). Cost: without
# it, none of 20 bands held the mean with 98% of curves empty (n = 3000, eps 1); with a share of 0.08 and no sds, 25 to 36 of
# 40 to 50 did with none to 100 of 1,500 measured (eps 1, delta 1e-6), and some said nothing of it.
HARDLY_FILLED, FILLED_SDS, UNKNOWN_LEVEL = 0.06, 2.0, 0.5

# Prior sd of the first function's level: so many units, the sd of the released level and half a bin, in squares. The
# curve's average over x need not be the mean of the curves' own means. The core prototype had no prior here, the basis
# prototype 3 sds and at least 0.15. Cost: not measured; watch "hopeless budget".
LEVEL_FACTOR = 2.0

# ------------------------------------------------------------------------------------------------ design (round 0)

# Nodes of the design, equidistant in the angle of x, besides both ends; and waves of its smooth part. The basis prototype
# had 162 nodes. Cost: not measured; more nodes cost time.
DESIGN_NODES, DESIGN_WAVES = 120, 64

# Sizes of the smooth part: wave k of the design has sd size / k. They are averaged by evidence under a log-normal prior
# with this median and sd 1. The sizes are those of the basis prototype. Cost: not measured; watch "density 1 + 0.75 cos".
SMOOTH_SIZES, TYPICAL_SMOOTH = (0.05, 0.15, 0.4, 1.0), 0.2

# Sds of an atom's mass at u = 0 and at public visit times, averaged by evidence, all that are positive together as likely
# as none; elsewhere atoms have this part of the variance. Cost: the basis prototype found sparse atoms (a prior that looks
# for few of them) worse, with coverage 0 between visits; other sizes were not measured.
ATOM_SIZES, ATOM_DENSITY = (0.0, 0.01, 0.03, 0.1, 0.3), 0.06

# Mass near a node (a window of this sd, in angle / pi) counts by near^2 / (near^2 + CLEAR^2 variance): masses cannot be
# negative, which lifts empty places to about one sd, and data would be believed in there. But a mass that is taken to be
# too small makes steps too large. Cost: with CLEAR 1 the ratio was 3.67 for 3.31 (geometric mean of visits, clump, falling
# density, gap, thin ends and uniform, n = 1000, eps .5 and 1, 32 repetitions), and coverage .94 to 1 for .91 to 1; with .25
# 3.32 and .91 to 1.
WINDOW, CLEAR = 0.03, 0.5

# Times that negative masses are set to zero and the others corrected; what positivity leaves of the sds of masses; and a
# mass too small to matter, also the ridge of that correction. Positivity makes the errors smaller, and clumps that are not
# seen make them larger. Cost: with 0.75 the ratio was 17.4 for 10.9 (visits, n = 1000, eps .5, 24 repetitions), 16.9 for 9.7
# (baseline clump) and 2.3 for 2.4 (uniform). Watch "density falls to zero".
POSITIVE_PASSES, POSITIVE_SD, TINY_MASS = 8, 1.2, 1e-6

# Most directions in which the design may be wrong that are kept, and the part of the largest variance below which one is
# left out. Cost: not measured.
DESIGN_DIRECTIONS, NEGLIGIBLE_DIRECTION = 24, 1e-3

# How many independent points a curve is taken to have when the sampling error of design moments is guessed: the number of
# points is private. Cost: not measured; watch "one point each" and "60 points each".
POINTS_GUESS = 2.0

# Clipping may weigh points differently along x. So many waves of relative sd CLIP_ERROR times this decay for each wave are
# part of what B may be wrong by. As in the basis prototype. Cost: not measured; watch "density falls to zero".
CLIP_WAVES, CLIP_WAVE_DECAY, CLIP_ERROR = 5, 0.8, 0.1

# Silos have designs of their own where the log ratio of evidence for it is at least this. Cost: of 40 studies of 20 sites
# with one design 3%, 3% and 10% had 2 or more (eps 2, 1, .5), of 5 sites 0%, 3%, 0%, of 2 sites 0%, 3%, 0%; of 20 sites
# whose designs differ 100%, 90% and 35%. What is then made of them is shrunk, so that a wrong yes costs little.
DESIGNS_DIFFER = 2.0

# Sizes of atoms in a silo's deviation from the design of all; smooth ones are SMOOTH_SIZES, and none. Prior probability that
# a silo deviates by nothing, in how many silos this prior counts, and steps by which it is learnt how common each size is.
# Cost: not measured. Before there was a model of deviations, moments were shrunk to those of all and then once more to a
# uniform design: E[Phi_1] of 20 sites was wrong by .29 (root mean square; sites differed by .35 from their mean, eps 2).
OWN_ATOMS, ONE_DESIGN, PRIOR_SILOS, SIZE_PASSES = (0.0, 0.03, 0.1), 0.7, 2.0, 20

# ------------------------------------------------------------------------------------------------ covariates

# A covariate is two-valued if the share of its values between the bounds is below so many sds of its noise and below this
# share; the smaller group has at least this share. Cost: not measured; watch "VCM, groups 30:70".
TWO_VALUED_SDS, MOST_INSIDE, LEAST_GROUP = 3.0, 0.3, 0.01

# Sds of noise that are taken off every bin of a covariate's histogram, since noise in empty bins would widen it; and the
# least scale, in units of half the distance of its bounds. Cost: not measured; watch "VCM d = 2, Fourier r = 3".
CLEAR_BINS, LEAST_SCALE = 1.0, 0.02

# Noise of all bins of a covariate's histogram together at which a normal law says as much of its spread as they do. Cost:
# without such a law four covariates at n = 500, eps 1 had scales six times too small in one of four draws.
UNCLEAR = 0.15

# Grid of that normal law: of its mean, up to this far from the middle of the bounds, and of its spread, from this one to 1;
# points of each. Cost: not measured.
LIKELY_MEANS, LIKELY_LEAST, LIKELY_POINTS = 0.9, 0.05, 19

# Its prior: sd of the mean; median of the spread and sd of its log. Cost: not measured.
LIKELY_MEAN_SD, LIKELY_SPREAD, LIKELY_LOG_SD = 0.5, 0.4, 0.7

# Share that stands for a bin when no bin is clear of noise, and the sd of values within a bin, in half bins: an even spread
# would have 0.58, whole numbers less. Cost: not measured.
LEAST_BIN, WITHIN_BIN = 1e-6, 0.3

# Prior sds, for covariates of variance 1: of a mean around 0, of a correlation, of the variance around 1; and of the
# coefficient of T_q before anything is released, which falls like 1/q.
# Cost: not measured; watch "VCM d=5, correlated design".
MEAN_SD, CORRELATION_SD, SQUARE_SD, WAVE_SD = 0.2, 0.4, 0.3, 0.3

# Sizes of how means and products of covariates change along x, averaged by evidence: sd of the first orthonormal polynomial
# over the points (then falling like 1/q), of a covariate of variance 1. Polynomials are orthonormal for the design, mixed
# with this part of a uniform one. Cost: with one size, 0.3, a covariate that follows x was shrunk to half of that.
WAVE_SIZES, WAVE_LOG_ODDS, EVEN_PART = (0.03, 0.15, 0.6), (0.0, -1.0, -2.5), 0.05

# Where covariates look two-valued, their means tell the squares, and the products too if they are never both at their upper
# bound: sd around that; log odds that squares are told. Cost: without it, four levels had a ratio of 4.6 at n = 2000, eps 1.
TOLD_SD, TWO_VALUED_TOLD = 0.03, 3.0

# Least variance of a standardised covariate. Cost: not measured.
LEAST_SQUARE = 0.05

# Products are asked for in units in which the rarer group of a two-valued covariate is this long: silos cut off at 3
# (`protocol.statistics.LARGEST_COVARIATE`). Cost: not measured; watch "VCM, groups 30:70".
ASKED_LENGTH = 2.0

# Least eigenvalue of the covariates' correlations; half of it at any x. Cost: not measured; watch
# "VCM d=5, correlated design".
MIN_COVARIATE_EIGENVALUE = 0.03

# Relative sd of E[g_j g_k] that is added to what noise leaves open: clipping weighs covariates differently.
# Cost: not measured; watch "VCM d = 2, Fourier r = 3".
COLUMN_ERROR = 0.05

# Relative sd by which the spread of curves may depend on covariates, when second moments of gradients are read as products
# of covariates. Cost: at correlation .95 the ratio was 3.2 without this reading.
UNEVEN_SPREAD = 0.15

# Least factor by which second moments of gradients are divided before, and most by which a principal direction's second
# moment is changed. Cost: not measured; watch "hopeless budget".
LEAST_FACTOR, MOST_CHANGE = 0.3, 4.0

# Covariates are whitened by this power of E[g g^T], and the rarer group of a two-valued one is never stretched beyond this
# length: its gradients would be clipped first. Cost, on problems of no table (6% treated, n = 2000; 16 repetitions): the
# error of the effect over least squares at eps .5 was 11.5, 8.0, 5.9, 5.0 with 1.2, 1.6, 2.2, 3; but with 3 only 12 of 16
# bands held the effect of a binary outcome in 8% treated (eps 1), with 2.2 46 of 48.
COLUMN_POWER, MOST_LEVERAGE = 0.5, 2.2

# The effect of one sd of the only covariate has this part of the first function's sizes, that of one of d this part times
# d^-1/2; its level has sd EFFECT_LEVEL of that, plus the size of its slope and bends. Cost: 1.0 for all had ratios of 3.1
# for 2.7 (correlation .95, eps 1) and 8.5 for 7.2 (d = 8, eps .5); 0.5 for all 1.70 for 1.59 (30% treated, eps 1).
EFFECT_SIZE, EFFECT_LEVEL = 0.7, 0.7

# ------------------------------------------------------------------------------------------------ prior

# Sds of the slope, in units: averaged by evidence. The basis prototype had the same ones for a unit of 0.2.
# Cost: not measured; watch "flat truth" and "mean mu_2, cosine".
SLOPE_SIZES = (0.05, 0.15, 0.5, 1.5, 5.0)

# Sds of all bends together, in units: averaged by evidence. The basis prototype had nine from .003 to 1.5 of y.
# Cost: not measured; watch "flat truth", "bump" and "steep sigmoid".
BEND_SIZES = (0.03, 0.065, 0.14, 0.3, 0.65, 1.4, 3.0, 6.5, 14.0)

# Median of the slope's size, and sd of its log: wide. Cost: not measured; watch "flat truth".
TYPICAL_SLOPE, SLOPE_SPREAD = 0.7, 1.5

# Median of the size of bends, and sd of its log: wide. Cost: not measured; watch "bump".
TYPICAL_BEND, BEND_SPREAD = 0.35, 1.3

# Median of the one size that bases other than free ends have. Cost: not measured; watch "mean mu_1, Fourier r = 3".
TYPICAL_VARIATION = 0.7

# Local shapes are offered for bends of more than this size, in units: smaller ones cannot be seen. Cost: not measured.
LEAST_LOCAL_BEND = 0.2

# Order 3: a parabola of variance 1, plus this part squared of white noise integrated three times. The parts are those of the
# basis prototype. Cost: not measured; in an earlier prototype order 3 without order 2 ruined peaks.
THIRD_ORDER_PARTS = (0.5, 0.12)

# Local shapes: bends near an end, falling with this rate in x, or near one of these places, within this width (sd).
# Cost: without local shapes the basis prototype had, for a peak at n = 2000, RMSE .0395 for .0302 and bands of 7.3 RMSEs for
# 5.9; for a steep start at n = 5000, RMSE .0256 for .0205 and coverage .25 for 1. Order 1 in their place was no gain for
# peaks and 4% worse for smooth curves. Rates 8 and 25 together (20 repetitions): RMSE .0375 for .0350 (exp(-5x), n = 1000,
# eps 1), .0161 for .0158 (a line), slopes held in 80% for 90% (log(1 + 12x), n = 5000, eps 1). Widths, places: not measured.
LAYER_RATE, PEAK_WIDTH, PEAK_PLACES = 10.0, 0.1, (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)

# Prior weight of bends near an end, order 2 having 1 (they have fewer sizes of slope: it is about twice the probability);
# and the size, in units, from which they are offered. Growth, decay and saturation bend at one end, which data say little
# of. Cost: with 2.7, slopes at the left end were held in 71% for 83% (log(1 + 12x), n = 5000, eps 1, 24 repetitions, 16
# functions in the tail, WIDER 1.1) and 92% for 100% (exp(-5x), eps 4); RMSE of a line .0154 for .0156.
ENDS_WEIGHT, LEAST_END_BEND = 7.0, 0.1

# Bends near a place: noise is alike within this distance (in x) where peaks are round, and this is the weight of round ones;
# the others are rough. Cost: with rough ones alone, and one Gaussian prior for all in the band, a round peak of sd .05 (n =
# 8000, eps 2, 20 repetitions) had an expected error of 3.1 times the error and bands of 6.4 RMSEs; with half of them round
# and components averaged 2.4 and 5.0. A distance of .04 and 0.9 round had 2.8 and 5.7.
PEAK_REACH, ROUND_SHARE = 0.03, 0.75

# For bases of cosines: the share of variance of curves whose ends are not level. Cost: not measured; watch
# "mean mu_2, cosine".
COHERENT_SHARE = 0.5

# Functions without bends: level and slope. Cost: none, it is a fact of the basis.
STRAIGHT = 2

# Functions after those of the basis in which estimates live: what clipped gradients still see of them, and the tail that a
# band allows for. A bend at an end is spread over many: what its slope lacks falls like 1 / functions. Cost: with 8, slopes
# at a bent end were held in 50% for 70% (n = 5000, eps 4, WIDER 1.1, 20 repetitions), with 16 in 80% for 100% (WIDER 1.3);
# bands of a round peak had 4.7 RMSEs for 5.0. With covariates every function has such a list, and fits with five took 1.7
# times as long with 24 as with 8. Watch "mean mu_2, cosine".
TAIL_FUNCTIONS, COVARIATE_TAIL = 24, 8

# Nodes of Gauss's rule by which shapes are integrated. Cost: none beyond time, if it is large enough for the functions.
PRIOR_NODES = 160

# ------------------------------------------------------------------------------------------------ posterior

# Directions with less than this part of the largest information are left out. Cost: none, the prior decides there.
LEAST_INFORMATION = 1e-10

# Components of a mixture with less than this part of the largest weight are left out. Cost: not measured; time.
NEGLIGIBLE_PART = 1e-3

# The same where the functions of a varying-coefficient model are solved for together. Cost: none that was seen; time.
NEGLIGIBLE_GAIN = 1e-2

# Times that the functions of a varying-coefficient model are fitted in turn. Cost: not measured; watch
# "VCM d=5, correlated design".
SWEEPS = 2

# Most by which averaging over sizes may multiply the variance of an effect's coefficient. Cost: not measured; watch
# "VCM d = 2, Fourier r = 3".
MOST_STRETCH = 4.0

# Eigenvalues below this part of the largest are lifted to it before a power is taken. Cost: none, it is rounding.
MIN_EIGENVALUE_RATIO = 1e-12

# Times that the posterior is computed in a round: what errors of B do depends on how far the iterates were from it.
# The basis prototype had three. Cost: not measured; watch "density falls to zero".
ESTIMATE_PASSES = 2

# ------------------------------------------------------------------------------------------------ law of lengths

# Cells that an octave of lengths is divided into. Cost: not measured; time.
LENGTH_SUBCELLS = 4

# Medians of the laws, in octaves and steps of half an octave, and the sd of the prior of a bulk's root mean square around 1,
# in octaves. Cost: with medians around 1 instead, root mean squares were thought to be larger than 1, their unit, and where
# releases say nothing (n mu = 2) every round enlarged the unit of the prior: squared error 1.9 for 1.4 (15 repetitions).
LOWEST_MEDIAN, HIGHEST_MEDIAN, SIZE_SPREAD = -5.0, 4.0, 1.5

# Bulks: chi with so many degrees of freedom; log-normal with these sds of the log; and chi 4 and log-normal .5 with a tail:
# its share, how many octaves further its median lies, its sd of the log. Cost: in the core prototype log-normal laws alone
# had ratio 2.31 for 1.87 (symmetric, n = 5000, eps .5); without tails coverage was .75 for .93 (growing, n = 5000, eps .5).
CHI_BULKS, LOGNORMAL_BULKS, TAIL = (2.0, 4.0, 8.0), (0.35, 0.5, 0.75, 1.1), (0.1, 1.2, 0.7)

# A second group: its share of the curves, its sd in octaves, and the prior weight of there being one. The core prototype had
# weight .15. Cost: in another prototype less mass in far cells took bounds x100 from ratio 258 to 3.1 and the coverage of
# rare outcomes from .90 to .07; these values were not varied.
SECOND_SHARES, SECOND_SPREAD, SECOND_ODDS = (0.02, 0.05, 0.12, 0.3), 0.5, 0.07

# Further weight of a second group in the octaves below the length of a curve at a bound: odds, octaves, and the distance (a
# ratio of lengths) at which the odds are halved. The core prototype had odds of .15. Cost: without a limit of that distance
# the core prototype had ratios of 380 to 420 for 4 to 7 (bounds x100, eps .5).
AT_BOUND_ODDS, BOUND_OCTAVES, BOUND_REACH = 0.07, 3, 32.0

# The same if all values look to be at a bound, times the fourth power of how likely that is, for groups of more than this
# share. Cost: without it the core prototype had ratio 15 and coverage .23 (rare, eps .5) for 3.6 and .90; with odds of 9
# and groups of any share coverage was .70 to .78 at n = 300.
TWO_VALUED_ODDS, CLEAR_SHARE = 20.0, 0.1

# Far curves (`far_curves.py`): by how much those of one octave may lift the level, in distances of the nearer bound, and by
# how much more if all values are at that bound. Measured on laws: .03 to .1 for a log-normal, .15 to .4 where 70 to 85% of
# subjects are at zero. Cost, 16 fits on seeds of no table: with .15, .08 and .05 RMSEs of 2.5, 2.1, 1.8 (log-normal, n =
# 250, eps .5) and .119, .100, .098 (gamma, n = 1000, eps 2), all bands holding; with .5 and .8 for the second 14 and 16
# held where 15% of subjects are above zero (n = 500, eps 2), 14 and 16 where 30% are (n = 250, eps 1), and the RMSE of a
# gamma with zeros (n = 500, eps 2) was .292 and .315.
FAR_SHARE, FAR_AT_BOUND = 0.06, 0.7

# Most curves in an octave; where far curves begin, in distances of the nearer bound, and end, in those of the further one
# (gradients of single curves are longer than that of all together). Cost: a length that took no account of single points
# missed octaves that were full, and bands of 10% who carry all events (n = 300, eps 2) held in 8 of 12 fits for 10; these
# values were not varied.
MOST_FAR, FAR_FROM, FAR_TO = 0.3, 2.0, 2.0

# Far curves are expected where the nearer bound is less than 1.25 octaves from the bulk's median, not from 2.5 octaves on:
# of a log-normal law these are sds of the log of .62 and .26, where what lies beyond three times the mean lifts it by .05
# and by nothing. Cost, 24 fits on seeds of no table: with (1, 2), these and (1.5, 3) bands of mild skew (log-sd .39, n =
# 2500, eps 1) were 5.8, 7.3 and 8.8 RMSEs wide; where the spread of logs grows with x (n = 1000, eps 2,
# `benchmarks/narrow`) 26, 30 and 31 of 32 bands held. These were taken instead of (1, 2) when that table had been seen.
NEAR_BOUND = (1.25, 2.5)

# Values at the bound are those of curves that stay there if the bulk is within half an octave of it, not from an octave on:
# zeros that come and go leave a bulk that is nearer the mean. Cost, 12 fits on seeds of no table: always, these and (.3, .9)
# had RMSEs of .19, .18, .17 where half of all values are zero (n = 1000, eps 2; .09 without far curves) and held 12, 12 and
# 11 of 12 where 30% of subjects are above zero (n = 500, eps 2); with (.2, .6) 8 of 12 held where 12% are (n = 4000, eps 1).
# These were taken instead of (.3, .9) when the table of `benchmarks/narrow` had been seen (5% carriers: 27 of 32).
ALL_AT_BOUND = (0.5, 1.0)

# Variance of a cell's share around its law, as a part of it: a law is believed in like a sample of 200 curves. Part of the
# first prior that enters every round's. Cost: in the core prototype a relative error of .15 had coverage .60 (growing,
# n = 5000), and .015 had bands 10% wider. The second value was not measured.
LAW_ERROR, FORGOTTEN = 0.005, 0.2

# By how many octaves laws are moved between rounds besides the step that is known, with weights: lengths in new coordinates
# are known to half an octave or so. Cost: not measured.
LENGTH_BLUR = ((-0.5, 0.25), (0.0, 0.5), (0.5, 0.25))

# Laws with less than this part of the largest weight are left out, and all but so many. Cost: not measured; time.
NEGLIGIBLE_LAW, MOST_LAWS = 1e-6, 400

# Laws that are compared with a histogram at a time, so that their numbers stay in a processor's cache. Cost: none.
LAWS_AT_ONCE = 1024

# ------------------------------------------------------------------------------------------------ radius and bias

# Radii that are tried, in octaves. Cost: not measured; the risk is flat near its least.
LOWEST_RADIUS, HIGHEST_RADIUS, RADIUS_STEP = -4.0, 14.0, 0.25

# Every how many radii are looked at first; and by how much, relatively, numbers that are equal may differ. Cost: none, it
# is time.
COARSE_RADII, ROUNDING = 6, 1e-9

# Part of the posterior weight of laws over which E(L - C)+ is averaged, where it is least: by the estimate, by the band.
# All of it takes phantom groups for real. Cost: in the core prototype all of the weight had ratios of 65 to 235 (bounds
# x100); .75 had coverage .65 (rare, eps .5). Of the band's value and of the two below, on 16 problems that are not in the
# tables (docs/method.md, section 12).
SURE, BAND_SURE = 0.9, 0.99

# What sizes of the bias (ASYMMETRIES) are multiplied by under `assume_symmetric`: a declaration is not quite believed.
# The core prototype took .05 of the bound, about as here, and had ratios of 2.0, 1.1, .86 with it and 3.3, 1.5, 1.1
# without (symmetric, n = 1000, eps .5, 1, 2). Cost: other values were not measured.
SYMMETRIC = 0.1

# Sizes of the bias of clipping as a part of its bound E(L - C)+, as they are averaged by the sides that are seen, with
# prior odds; and odds for a law with a second group, which is hardly ever on both sides. Measured on ten laws of no table
# (radius of 1 to 3 medians): 0 on symmetric ones, on others .2 to .8 along the level or along the slope, in units of what
# is usual there. Cost: other values were not measured.
ASYMMETRIES, ASYMMETRY_ODDS, SECOND_ASYMMETRY_ODDS = (0.08, 0.35, 0.8), (0.4, 0.25, 0.35), (0.05, 0.15, 0.8)

# A law is heavy if this share of its gradients, or more, is longer than 2^2 medians, but for laws with a second group more
# than 2^3 medians away. A log-normal bulk of .75 is heavy, one of .5 is not, nor is one with a TAIL. Cost: with .02, which
# makes those with a TAIL heavy, bands of symmetric outcomes were 1.23 and 1.28 times as wide (n = 1000 and 5000, eps 2, 24
# fits on seeds of no table), and no more bands held where skewness is at an end; without second groups 20 of 24 held for 23
# where skewness is at one end (eps 2).
HEAVY, HEAVY_FROM, HEAVY_TO = 0.03, 2.0, 3.0

# One more way in which sides of a heavy law may lie: long gradients, from so many octaves above the median on, on one side
# by themselves, the many others nearly even, as where y is skewed in a part of the domain only; how one-sided; and the odds
# of the four sizes. Cost: without it and the next two, bands of twelve problems whose skewness changes along x (24 fits
# each, seeds of no table) held 280, 278 and 267 of 288 at eps .5, 1 and 2, for 287, 285 and 284 with all of it, and squared
# errors were .96, 1.07 and 1.13 of what they are now (geometric means), half widths .93, .89 and .90: even sides of short
# gradients were taken to show that long ones are even. Constants were chosen on these problems. Other values: not measured.
TAIL_FROM, TAIL_ASYMMETRY, HEAVY_ASYMMETRY_ODDS = 0.75, 0.8, (0.1, 0.15, 0.3, 0.45)

# Of a heavy law the bias may be so many times as large; and the share of an octave that noise hides has an sd of so many
# times what the law has there before it is counted: in the draws that were looked at (n = 1000, eps 2) the 1.2% of curves
# that were two to four times as long as the radius made half of the bias, and a count's noise had an sd of 2%. Not where far
# curves are suspected, which allow for the same: with both the RMSE of a log-normal outcome was 1.13 and 1.08 of what it
# was without (eps 1 and 2), for 1.03 and 1.03. Cost: with 1.2 and 1 (24 fits, seeds of no table) 22 and 21 bands held for
# 24 and 23 where skewness is at one end (eps .5 and 2). The RMSE of symmetric outcomes (n = 1000, eps .5, 1, 2) is 1.07,
# 1.03, 1.03 of what it was without any of this, at n = 5000 it is the same; that of heavy symmetric ones (t4) 1.17, 1.16
# and 1.09.
HEAVY_GROWTH, HIDDEN = 1.3, 1.5

# A band believes in sizes so many times as large. Where nothing is seen of sides they come to .85 of the bound, and to
# 1.2 of it for a second group; before sides were counted it was 1.0, and .6 covered .83 (skewness that grows). Cost: not
# measured.
BAND_ASYMMETRY = 5 / 3

# Coordinates whose sides are counted: level and slope. Cost: the level alone, with the same share of the budget, had
# RMSEs of .047 for .044 and bands of 5.2 for 4.7 RMSEs (symmetric, n = 1000, eps 1, 16 repetitions); in an earlier trial
# 1.6 to 1.9 times the squared error where the skewness changes its sign with x.
SIDES = 2

# Sides of a skewed law, which is centred: long gradients on one side, all others, SHORT_SIDE as one-sided, on the other;
# a second group begins BEFORE_SECOND octaves before its place. COMMON_SIDE of the variance of sides follows this, the
# rest is each octave's own, which on the long side is at least that of size LONG_SIDE. Measured on gamma, log-normal and
# other laws: -.3 to -.45 up to the median, -.2 within an octave beyond it, .8 and 1 further out. Cost: with one factor
# for all long octaves and none for short ones the RMSE was .104 for .092 (gamma, n = 1000, eps 1, 20 repetitions), since
# a middle octave in balance was taken for a symmetric tail.
COMMON_SIDE, SHORT_SIDE, LONG_SIDE, BEFORE_SECOND = 0.8, 0.4, 0.35, 1.5

# Probability that coordinates are alike in how asymmetric they are, those that are not counted among them. Cost: a law
# that is skewed in the middle against both ends (n = 5000, eps 1) had ratio 3.0 and coverage .92 in a trial with .7, and
# 1.8 and 1 in one with .5, which differed in LONG_SIDE and in the odds of second groups, too (12 and 8 repetitions).
ALIKE_ASYMMETRY = 0.5

# Part of T_k that sides do not tell, as a part of its usual size: within an octave gradients on the long side are longer,
# and point more along the coordinate, than those on the other. Steps that find the balance. Cost: with an error of half
# of the mean instead, T_k of an exponential law in one of six dimensions was missed by three of its sds.
UNTOLD, BALANCE_STEPS = 0.5, 20

# Variance of the bias along the slope and along the first bend (then falling like 1/k), that along the level being 1; and
# the part of it that all rounds of a silo share. Cost: a fall like (1 + l)^-1.3 had coverage .82 in the core prototype
# (growing, n = 1000, eps 1, band .6). The common part was not measured; watch "noise skewed".
BIAS_SLOPE, BIAS_REST, COMMON_BIAS = 0.7, 0.35, 0.8

# The same along an effect of a covariate that is as often above as below its mean, that along the first function being 1;
# groups of other shares have more (`measurements.column_parts`). Cost: with 1, radii and bands were wider for nothing.
BIAS_EFFECT = 0.3

# The most of it that a band gives to the effect of the smaller of two groups, in that of the first function. Cost: with 1 a
# lognormal outcome, two and a half times as wide in 35% treated (n = 2000, eps 2), was held in 14 of 16 fits, with 2 in 15;
# where the outcome is symmetric the band of the effect is 4 to 10% wider.
BAND_EFFECT = 2.0

# Least eigenvalue of the clip's mean derivative: a release is never multiplied by more than 20. Cost: not measured.
MIN_JACOBIAN = 0.05

# Relative ridge of a round's covariance before it is inverted. Cost: none, it is rounding.
LEAST_NOISE = 1e-9

# Grid of x on which iterates are kept within the bounds of y and the longest gradient is looked for; and a deviation that
# counts as none. Cost: not measured; neither concerns privacy.
BOUND_POINTS, MIN_DEVIATION = 101, 1e-9

# ------------------------------------------------------------------------------------------------ shape of the ball

# A smooth random curve: variance of its first wave, that of the level being 1 (then falling like k^-2); and the part of a
# gradient's spread that is smooth before anything is measured. Cost: not measured; watch "one point each" and
# "60 points each".
HARMONIC_VARIANCE, SMOOTH_SHARE = 0.25, 0.6

# W: radius in root mean squares; steps; the largest ratio (log) to the shape without a prior; power of the posterior weights
# of the prior's components. Cost: RMSE times 1000 of growth, line, peak in the basis prototype (4 to 8 seeds): range 0
# 27, 20, 52; 1 26, 18, 56; 2 26, 18, 69; 4 23, 16, 222. Weights as they are, with range 1, were as good. The rest was not
# measured.
TYPICAL_RADIUS, SHAPE_PASSES, SHAPE_RANGE, TEMPER = 1.5, 6, 1.5, 0.3

# ------------------------------------------------------------------------------------------------ covariance of gradients

# Relative sds of the modelled covariance's entries and of the trace that follows from the law of lengths; the least part of
# that trace; least eigenvalue, in mean eigenvalues. The first is the core prototype's. Cost: not measured here; the basis
# prototype had coverage of .75 to .88 where a covariance of one size stood in for two (growth, visits, n = 5000), .88 to 1
# with two. Watch "60 points each".
MODEL_ERROR, TRACE_ERROR, LEAST_TRACE, MIN_GRADIENT_EIGENVALUE = 0.5, 0.3, 0.5, 0.1

# Noise (sd of a share of curves) at which a round's own size of gradients counts half, the size before it half, in logs:
# what is made of noise alone is positive, and would grow from round to round. Cost: without it the squared error was 1.4 for
# 0.8 at n mu = 2 (a mean, 15 repetitions), and 9.1 for 1.2 (two effects, 10 repetitions).
SEEN_COUNTS = 0.3

# Relative sd between the sd of curves' means and the unit that gradients show, with covariates. Cost: without the former,
# a hopeless budget took its noise for spread, and effects were not shrunk.
UNIT_ERROR = 0.25

# ------------------------------------------------------------------------------------------------ bands

# A band's prior has sds so many times as large (not near a place), and slope and bends at least this sd, in units; its
# covariance is then multiplied by DISTRUST. Sizes are those of the whole domain, bends at an end may be larger. Cost: with
# 1.1 slopes at a bent end were held in 80% for 100% (n = 5000, eps 4, 20 repetitions), with bands 3% narrower.
WIDER, LEAST_WIDE, DISTRUST = 1.3, 0.05, 1.0

# An error of 1 of the slope at an end (x in [0, 1]) counts like one of the curve's norm of the root of this, where the
# estimate is written in the basis. Cost: with 0 the slope's RMSE at a bent end was 1.62 for 1.34 (n = 5000, eps 4, 20
# repetitions), the curve's .0150 for .0154; with 2e-4 1.24 and .0157.
SLOPE_WORTH = 5e-5

# The same for effects, whose sizes are less well known from what is measured.
EFFECT_WIDER = 1.4

# ------------------------------------------------------------------------------------------------ forecast

# Guess of spread, noise and signal, in y, where the user gives none: the typical sd of curves' means.
# Cost: not measured; a forecast with guesses of one's own does not use it.
GUESSED_SD = TYPICAL_SD_OF_MEANS

# Guess of the sd of the log of the sd of the curves' means; and a number of curves that stands for no sampling error, which
# a forecast of the design leaves to the noise. Cost: none, neither decides the forecast.
GUESSED_LOG_SD, MANY_CURVES = 0.1, 1e9

# Nodes of Gauss's rule for guessed functions; functions over which a smooth curve's variance is added up; times that the
# posterior is computed. Cost: not measured; time.
QUADRATURE_POINTS, ALL_FUNCTIONS, FORECAST_PASSES = 256, 400, 3

# Made-up curves whose gradients a forecast looks at, most points of each, and where their numbers begin. Cost: 8,000 curves
# change forecasts by a few percent; time.
FORECAST_CURVES, FORECAST_POINTS, FORECAST_SEED = 2000, 40, 2026

# Numbers in the largest table of functions at made-up points that is kept for the next forecast. Cost: none; memory.
FORECAST_KEPT = 1_000_000

# Functions, the level included, over which a guessed signal is spread, and the power of k with which it falls; part of the
# prior's bias that stays where functions are given; and how much more noise the early rounds' budget leaves than a single
# round would. Power 1, 1.5, 2: forecast over measured error 0.8 to 1.9, 0.7 to 1.6, 0.6 to 1.5 (14 settings of no table, 24
# repetitions; symmetric, binary and skewed). The others: not measured.
SIGNAL_FUNCTIONS, SIGNAL_FALL, FORECAST_BIAS, EARLY_ROUNDS = 7, 1.75, 0.5, 0.3

# Possible courses that a forecast follows where every subject is a site of its own, and made-up curves in each. Over 16
# settings of no table (one silo of the same precision, 30 fits each, random functions) forecasts were 0.5 to 1.7 of the
# measured error with them, 0.1 to 1.6 without. Cost: a twentieth of a second for each course.
COURSES, COURSE_CURVES = 16, 500

# Delta of the one silo that stands for all of them in a course; its epsilon follows from the precision. Cost: none, noise
# depends on the precision alone.
POOLED_DELTA = 1e-12

# What a forecast from average releases leaves out: rounds that begin far from the mean, scales and shapes learnt from
# noise, and, where y is skewed, radii that allow for far curves. It is (a / n mu)^b of the noise, n mu being that of all
# gradients, at most a share, and a share more of skewed outcomes; nothing of two-valued ones, whose radius is known. Over
# settings of no table (8 fits each) forecasts were 0.25 to 1.25 of the measured error of symmetric outcomes without it (28
# settings, random functions), 0.5 to 1.3 with it; of skewed outcomes (12 settings) 0.3 to 0.8 and 0.55 to 1.1. For the
# third, which matters under local privacy, an earlier page of `benchmarks/planner` was looked at, too.
LOST_PRECISION, LOST_POWER, MOST_LOST, LOST_TO_FAR = 55.0, 0.8, 1.2, 1.0

# ------------------------------------------------------------------------------------------------ notices

# Part of the posterior variance from which the bias of clipping is worth a sentence; probability from which an outcome
# counts as two-valued, or a second group as real; share up to which an event is rare; most subjects who carry it, for each
# subject's worth of events; sds from which a share is clearly not zero. Cost: not measured; only sentences depend on them.
NOTABLE_BIAS, CLEARLY_TWO_VALUED, RARE, CARRIERS_PER_SHARE, CLEAR_SDS = 0.35, 0.6, 0.1, 4.0, 3.0

# How many sds a band is wide to each side, about: to compare it with what hidden subjects could do. Cost: only a sentence
# depends on it.
USUAL_CRITICAL = 3.0

# Share of values at the lower bound from which their logarithm, and so a geometric mean, depends on that bound.
# Cost: not measured; only a sentence depends on it.
MANY_AT_BOUND = 0.02

# Share of points at visit times from which it is said; mass below which a place is thin, in that of a uniform design; least
# length of a gap, in x. Cost: not measured; only sentences depend on them.
MOSTLY_VISITS, THIN, LEAST_GAP = 0.7, 0.25, 0.08

# ------------------------------------------------------------------------------------------------ sites

# Sds between sites, in units (all for the level, every second for the slope, every third for bends); scale of their
# half-Cauchy priors; log odds, besides the evidence, that sites are alike. Cost: in a prototype with 200 repetitions
# the half-Cauchy prior covered .93 to .98 (3, 5, 20 sites); at 3 sites a log-uniform one covered .88 to .91 and a plug-in
# .76. The log odds were not measured. Watch "10 silos of 200".
SITE_SIZES, SITE_SCALE, ALIKE_ODDS = (0.0, 0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0), 0.5, 2.0

# Part of the doubt about B and of the bias of clipping that all sites share; a first look at sites, which says how far each
# is from the iterates, takes every so manyth size. Cost: sites whose means differ, 20 of them at eps 2, covered .80 with
# neither (10 repetitions), and all of the doubt made half widths of 4.5 RMSEs for sites that are alike.
SHARED_ERROR, ROUGH_STEP = 0.5, 2

# The quantiles that are given of I^2. Cost: none, it is a definition.
LOW_MIDDLE_HIGH = (0.025, 0.5, 0.975)

# Odd sites: sds between honest sites, in units (0 is left out: no two hospitals are quite alike), and of a site from
# anywhere; functions in which sites are compared; what stands for "any value", in units. Cost: not measured. Shuffled x was
# flagged in none of 40 fits, whatever the number of functions. Watch "garbage site".
ODD_FUNCTIONS, ANYWHERE, ODD_BETWEEN, ODD_SIZES = 3, 30.0, (0.15, 0.35, 0.6, 1.0, 1.7, 3.0), (1.0, 3.0, 8.0)

# By how much honest sites may differ in the log spread of their curves' means and in shares (of values at the bounds, of
# long gradients), and do in any case in the latter; octaves below the radius in which companions are counted. Cost: not
# measured; watch "garbage site".
SPREADS_DIFFER, SHARES_DIFFER, ANY_SHARES_DIFFER, OCTAVES_WITHIN = 0.3, 0.15, 0.05, 5

# Most that shares of long gradients, and the histogram's level once functions are known, may add to the log odds: a site far
# from the others has more long gradients, honest or not, and a level that depends on its design. Cost: without bounds three
# in ten studies of 20 honest sites whose means differ (eps 2) had a site flagged, with
# them two in 54, designs that differ among them.
MOST_BY_LENGTHS, MOST_BY_LEVEL = 3.0, 1.0

# An odd site counts for this power of the odds (1 - p) / p that it is honest, p > 1/2. What garbage does grows with the
# square of its distance, what is lost without a site like the others does not grow. Cost: with the third power one
# garbage site of five at eps .5 (24 repetitions) made the error 2.8 times as large, with the eighth 2.1.
TRUST_POWER = 8

# How often a site that is odd in one trait is odd in its level, in relation to any other trait: another unit, an offset and
# one value for all are. Cost: with 1, a site of five that was 7.5 units away (300 subjects each, eps 1) had p = .53.
ODD_LEVELS = 4.0

# By how much the share of long gradients may differ (one sd) for each unit of log(1 + d^2), d being how far a site's own
# function is from the common one, in units. Two honest sites at d = 1.4 and 1.5 had .27 and .25 more. Cost: without it both
# were flagged, in 60 studies of 20 sites whose slopes, or designs and means, differ (eps 2), by what their functions showed
# already; the mean over subjects, in which flagged sites count less, then erred by 7 and 13 times as much (squares).
LONGER_AWAY = 0.25

# Probability from which a site is flagged; studies in which one odd site is expected; sites from which one can be named, and
# from which it counts less; least part of a posterior's precision that is data's. Cost: not measured.
LIKELY_ODD, STUDIES_PER_ODD_SITE, FEWEST_SITES, FEWEST_TO_ACT, LEAST_LEARNT = 0.5, 2, 3, 4, 0.01

# ------------------------------------------------------------------------------------------------ guards

# Keeps a division or a logarithm from zero. Cost: none.
TINY = 1e-300

# Relative ridges, of a prior's covariance and of a risk's derivative, before they are inverted. Cost: none, it is rounding.
RIDGE, SLOPE_RIDGE = 1e-12, 1e-9

# Least weight of a component before a power is taken, least probability of an octave before a division, and least
# probability from which an octave's variance is computed. Cost: none.
LEAST_WEIGHT, LEAST_CELL, LEAST_MASS = 1e-30, 1e-30, 1e-12

# Least length and least mean square of lengths before a logarithm is taken. Cost: none.
LEAST_LENGTH, LEAST_LENGTH_SQUARE = 1e-9, 1e-12

# Fit of a matrix by two: when they count as one, the least factor, and the part of the other that the missing one gets.
# Cost: none but the last, which was not measured.
SINGULAR, LEAST_FITTED, OTHER_FITTED = 1e-12, 1e-12, 1e-3

# Triangular matrices up to this size are inverted as any other. Cost: none, it is a matter of speed.
SMALL_TRIANGLE = 16

# Least uniform mass before a division, and singular values (of the largest) that count as zero. Cost: none.
LEAST_UNIFORM, NEGLIGIBLE_IMAGE = 1e-12, 1e-6
