"""
A skewed biomarker
==================

**Question.** How does bilirubin develop in 312 patients with primary biliary cirrhosis, when a few of them have
values ten times those of the others?

A mean of raw values and a mean of logarithms are different questions. Privacy makes the choice visible: a person with
an extreme value moves the first mean much, and the second little.
"""

# %%
# The Mayo Clinic's trial, shipped with dpfda as log bilirubin. 312 patients are few: the budget is larger here, and
# the band still says how little 312 curves can show.
import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateMean
from dpfda.curves.datasets import load_frame

visits = load_frame("pbcseq")
visits = visits[visits["x"] <= 6].assign(bilirubin=lambda table: np.exp(table["y"]))
columns, promise = {"id": "id", "x": "x"}, {"epsilon": 4, "delta": 1e-4, "domain": (0, 6)}

# %%
# Two studies of the same patients: together they cost both budgets. With ``transform="log"`` the silo takes logarithms,
# and answers come back in mg/dl.
logs = PrivateMean(**promise, y_bounds=(0.05, 55), transform="log").fit(visits, y="bilirubin", **columns)
raw = PrivateMean(**promise, y_bounds=(0, 55), outcome="positive").fit(visits, y="bilirubin", **columns)
print(logs.estimand_)

# %%
# The geometric mean is the curve of a typical patient; the mean of the raw values is pulled up
# by the patients who are worst, and its band is wider in proportion.
x = np.linspace(0, 6, 101)
figure, axes = plt.subplots(figsize=(7, 4))
for curve, name, colour in [
    (logs.curve_, "typical patient: geometric mean", "#1b5e8c"),
    (raw.curve_, "mean of raw values", "#b3541e"),
]:
    low, high = curve.band(0.95, x=x)
    axes.plot(x, curve(x), color=colour, label=name)
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
axes.set(
    xlabel="years since entry",
    ylabel="bilirubin (mg/dl)",
    ylim=(0, 12),
    title="312 patients, epsilon = 4 for each curve",
)
axes.legend()
figure.tight_layout()

# %%
# What was released also says how much of the uncertainty is due to privacy, and how much to the number of patients.
print(logs.expected_error_)
for warning in raw.warnings_:
    print("*", warning)
plt.show()
