"""
Planning a study
================

**Question.** We will see patients about six times each, and we want to know a score between 0 and 100 to within one
point. How many patients do we need, at which epsilon?

A forecast uses public numbers only. It costs nothing, because no data are involved.
"""

# %%
# Guesses of the standard deviations: patients around the mean 12, one measurement 6, the mean curve around its level 8.
import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateMean

guesses = {"m": 6, "spread": 12, "noise_sd": 6, "signal": 8}
patients = np.unique(np.geomspace(200, 20_000, 9).round().astype(int))


def distance(n: int, epsilon: float) -> float:
    """The typical distance between the estimate and the truth, in points."""
    study = PrivateMean(epsilon=epsilon, delta=1e-6, domain=(0, 1), y_bounds=(0, 100))
    return float(np.sqrt(study.forecast(n=int(n), **guesses).total))


# %%
figure, axes = plt.subplots(figsize=(7, 4))
for epsilon in (0.5, 1.0, 4.0):
    axes.loglog(patients, [distance(n, epsilon) for n in patients], marker="o", label=f"epsilon = {epsilon:g}")
axes.loglog(patients, [distance(n, 64.0) for n in patients], color="0.5", linestyle="--", label="hardly any privacy")
axes.axhline(1, color="0.3", linewidth=1)
axes.set(xlabel="patients", ylabel="typical distance (points)", title="forecasts, before any data are collected")
axes.legend()
figure.tight_layout()

# %%
# The parts of the error say what would help. Where privacy leads, more patients help twice as fast as elsewhere: its
# part falls with the square of their number, the part of sampling only with their number.
for n in (500, 2000, 8000):
    print(f"{n:>5} patients: {PrivateMean(1, 1e-6, domain=(0, 1), y_bounds=(0, 100)).forecast(n=n, **guesses)}")

# %%
# On the command line, with a table of privacy models and of numbers of sites: ``dpfda plan --n 2000 --m 6 --epsilon 1
# --delta 1e-6 --y-bounds 0:100 --spread 12 --noise 6 --signal 8 --error 1``.
plt.show()
