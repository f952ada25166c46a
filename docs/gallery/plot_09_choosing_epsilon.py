"""
Choosing epsilon
================

**Question.** What does epsilon mean for a person in the data, and what does it cost the curve?

Both sides can be drawn. For a person: how well can an attacker, who knows everybody else's data, tell whether this
person's record was used? For the curve: how wide is its band, and how far is it from the curve that hardly protects
anybody?
"""

# %%
# Gaussian noise bounds every attack: with a false alarm rate of 5%, no test detects the record more often than shown.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from dpfda import PrivateMean
from dpfda.curves.datasets import load_dataset
from dpfda.privacy.accounting import mu_for

epsilons, delta, false_alarms = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0]), 1e-5, 0.05
detected = norm.sf(norm.isf(false_alarms) - np.array([mu_for(epsilon, delta) for epsilon in epsilons]))

# %%
# The price, on data that are public and therefore may be fitted as often as we like. With your own data every fit would
# be debited: choose epsilon by a forecast, or on public data like these.
ages = (25, 85)
curves = load_dataset("nafld-lipid").restrict(ages)
x = np.linspace(*ages, 121)
options = {"domain": ages, "y_bounds": (0, 150)}
reference = PrivateMean(epsilon=500, delta=delta, **options).fit(curves).predict(x)
widths, distances = [], []
for epsilon in epsilons:
    fits = [PrivateMean(epsilon=epsilon, delta=delta, **options).fit(curves) for _ in range(3)]
    widths.append(np.mean([np.subtract(*fit.band(0.95, x=x)[::-1]) for fit in fits]) / 2)
    distances.append(np.sqrt(np.mean([(fit.predict(x) - reference) ** 2 for fit in fits])))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.semilogx(epsilons, 100 * detected, marker="o")
left.axhline(5, color="0.5", linestyle="--")
left.text(4, 8, "guessing", color="0.4")
left.set(xlabel="epsilon", ylabel="detected at most (percent)", title="for a person: attacker with 5% false alarms")
right.loglog(epsilons, widths, marker="o", label="half width of the 95% band")
right.loglog(epsilons, distances, marker="s", label="distance from epsilon = 500")
right.set(xlabel="epsilon", ylabel="mg/dl", title="for the curve: means of three fits")
right.legend()
for axes in (left, right):
    axes.minorticks_off()
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
figure.tight_layout()

# %%
# Studies of the same people share one total. Epsilons do not simply add up: a total of 3 pays for six studies of 1.1
# each, at this delta.
for epsilon, share, width in zip(epsilons, detected, widths, strict=True):
    print(f"epsilon {epsilon:>4g}: detected at most {100 * share:5.1f}%, band +- {width:.2f} mg/dl")
plt.show()
