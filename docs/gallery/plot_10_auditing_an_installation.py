"""
Auditing an installation
========================

**Question.** The proofs are on paper. Does the program that is installed on *this* machine keep the promise?

The audit searches for the two worst data sets that differ in one person, runs the real release path on both, and
tests whether anybody could tell them apart better than epsilon allows. ``dpfda audit`` does this for every kind of
release, with a million hostile inputs besides. Here are a few attacks, and the same attacks on a library that was
broken on purpose.
"""

# %%
# For two kinds of release: the epsilon that is claimed, and the epsilon that the attack proves. A proven epsilon
# above the claimed one would refute the claim.
import matplotlib.pyplot as plt
import numpy as np

from dpfda.audit.broken import BROKEN
from dpfda.audit.cases import single_cases
from dpfda.audit.releases import audit_release
from dpfda.audit.search import worst_pair

RUNS = 1000
CHOSEN = ("share-below", "shares-at-bounds")
cases = [case for case in single_cases() if case.name in CHOSEN]


def attack():
    """The verdicts on all chosen releases, with the system's own noise."""
    rng = np.random.default_rng(1)
    return [audit_release(worst_pair(case, rng, restarts=3, steps=60), RUNS) for case in cases]


honest = attack()
with BROKEN["noise 30% too small"]():
    broken = attack()

# %%
# The grey bars must not be exceeded. They are exceeded when the noise is too small.
figure, axes = plt.subplots(figsize=(8, 4))
places = np.arange(len(cases))
axes.bar(places - 0.27, [result.epsilon for result in honest], 0.27, color="0.75", label="claimed")
axes.bar(places, [result.epsilon_found for result in honest], 0.27, label="proved by attack: this installation")
axes.bar(
    places + 0.27, [result.epsilon_found for result in broken], 0.27, label="proved by attack: noise 30% too small"
)
axes.set_xticks(places, [case.name for case in cases])
axes.set(ylabel="epsilon", ylim=(0, 7), title=f"attacks with {RUNS:,} releases on each side")
axes.legend()
figure.tight_layout()

# %%
# Every violation is stated in words. This installation has none; the broken library does.
print("this installation:", [str(violation) for result in honest for violation in result.violations] or "no violation")
for result in broken:
    print("broken:", *result.violations[:1])
plt.show()
