"""B1: a histogram with no bins reads every subject's x.

Promised: the counts of a `LevelHistogram` move by at most sqrt 2 when one curve is replaced, and noise is scaled to
that.
Breaks: `LevelHistogram(bins=0)` in a plan. `level_pass` computes the bin min(max(..., 0), bins - 1) = -1 and, without
a bounds check, adds to the word before the empty array: the HIGH word of the total. Each curve with a point in the
domain adds 2^32. With batches of one curve and a domain that halves from study to study, each answer is one noiseless
bit: "does subject i have a point between a and b?". Twenty studies give one x of each subject to 1e-6.
Root cause: fields of a plan are not validated; `HistogramBound(bins + 1)` checks its own argument only; kernels trust
shapes.
Removed by: rule 1 (terms, never a plan; bins has a closed range) and rule 2 (kernel entries check shapes before a
write).
"""

from __future__ import annotations

import math

import harness

harness.source()

import numpy as np  # noqa: E402
from dpfda.engine.plan import Round  # noqa: E402
from dpfda.engine.quantities import LevelHistogram  # noqa: E402
from dpfda.messages import Query  # noqa: E402

from dpfda.basis import Cosine  # noqa: E402
from dpfda.curves import Curves  # noqa: E402
from dpfda.privacy.ledger import Ledger  # noqa: E402
from dpfda.silo import Silo  # noqa: E402

SUBJECTS, STUDIES, SHARE = 6, 20, 1e-15

secret = np.random.default_rng(7).uniform(0.0, 1.0, SUBJECTS)  # one visit of each subject
curves = Curves.from_long(np.arange(SUBJECTS), secret, np.zeros(SUBJECTS))
ledger = Ledger.in_memory(1.0, 1e-9)
silo = Silo(curves, epsilon=1.0, delta=1e-9, name="north", ledger=ledger)  # real noise: no seed

rounds = [Round((LevelHistogram(bins=0),), part, SUBJECTS) for part in range(SUBJECTS)]
low, high = np.zeros(SUBJECTS), np.ones(SUBJECTS)
signal = noise = 0.0
for target in range(SUBJECTS):  # a domain is one interval: subjects are searched one after the other
    for study in range(STUDIES):
        middle = (low[target] + high[target]) / 2
        plan = harness.plan_of(SUBJECTS, [rounds[target]], basis=Cosine(3, (low[target], middle)), shares=((SHARE,),))
        run = f"{target}-{study}"
        silo.join(plan, run)
        release = silo.release(Query(run, 0))
        noise = float(release.noise_sd[0])
        inside = release.values[0] > 2.0**31
        signal = max(signal, float(release.values[0]))
        low[target], high[target] = (low[target], middle) if inside else (middle, high[target])

found = (low + high) / 2
error = float(np.abs(found - secret).max())
spent = ledger.spent()
mu = math.sqrt(spent.mu_squared)
print(f"declared sensitivity of the count: {math.sqrt(2):.4g}; noise sd at this share: {noise:.3g}")
print(f"one curve moved the released count by: {2.0**32:.4g} (= 2^32)")
for number, (true, guess) in enumerate(zip(secret, found, strict=True)):
    print(f"  subject {number}: x = {true:.7f}, found {guess:.7f}")
print(f"{spent.debits} releases; the ledger charged mu = {mu:.3g}, epsilon = {spent.epsilon:.3g} at delta = 1e-09")
harness.verdict(
    error <= 1.01e-6,
    f"the x of all {SUBJECTS} subjects to {error:.1e} for epsilon = {spent.epsilon:.1e} at delta = 1e-9 "
    f"(one curve adds 2^32 = {2**32} where {math.sqrt(2):.3f} is declared)",
    f"the largest error of the guesses is {error:.2g}",
)
