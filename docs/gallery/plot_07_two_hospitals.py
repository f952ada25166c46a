"""
Two hospitals, each with a budget of its own
============================================

**Question.** Two hospitals want one curve. Neither may see the other's patients, and each has promised its own
patients a total that no study may exceed. Can they?

A `Silo` owns curves and a budget. Whatever is asked, it debits its ledger first, and only noisy sums leave it.
"""

# %%
# Each hospital creates its ledger once. North allows a total of epsilon = 1.2, South a total of 1.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from dpfda import BudgetExceeded, Ledger, PrivateMean, Silo
from dpfda.curves.datasets import load_dataset

ages = (25, 85)
curves = load_dataset("nafld-lipid").restrict(ages)
folder = Path(tempfile.mkdtemp())
Ledger.create(folder / "north.ledger", epsilon=1.2, delta=1e-5)
Ledger.create(folder / "south.ledger", epsilon=1.0, delta=1e-5)
at_north = np.random.default_rng(1).random(curves.n) < 0.7
north = Silo(curves[np.flatnonzero(at_north)], epsilon=1, delta=5e-6, ledger=folder / "north.ledger", name="north")
south = Silo(curves[np.flatnonzero(~at_north)], epsilon=1, delta=5e-6, ledger=folder / "south.ledger", name="south")

# %%
# One study over both. The statement says what each hospital promised and spent.
study = PrivateMean(domain=ages, y_bounds=(0, 150))
fit = study.fit([north, south])
print(fit.privacy_)

# %%
# The curve of both together, and each hospital's own, from the same releases.
figure, axes = plt.subplots(figsize=(7, 4))
fit.curve_.rename("both").plot(ax=axes)
x = np.linspace(25, 85, 121)
for name in ("north", "south"):
    axes.plot(x, fit.sites_.curve(name)(x), linestyle="--", label=name)
axes.set(xlabel="age (years)", ylabel="lipid (mg/dl)", ylim=(40, 65), title="one study, two budgets")
axes.legend()
figure.tight_layout()

# %%
# A second study of the same size does not fit into what is left, and is refused before anything is released.
again = Silo(curves[np.flatnonzero(at_north)], epsilon=1, delta=5e-6, ledger=folder / "north.ledger", name="north")
try:
    PrivateMean(domain=ages, y_bounds=(0, 150)).fit([again])
except BudgetExceeded as refusal:
    print(refusal)
plt.show()
