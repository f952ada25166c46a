"""
A mean curve with its band
==========================

**Question.** How does a blood lipid change with age, on average, in 15,205 people of a community study of fatty liver
disease?

Everybody was measured at other ages, some once, some 65 times. The result is a curve over age that may be shown to
anybody: it is differentially private for each person's whole record.
"""

# %%
# The data come with dpfda. The ages that we ask about and the range of the lipid are *public*: chosen from what the
# study is and what is possible, not from what was seen.
import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateMean
from dpfda.curves.datasets import load_dataset

ages = (25, 85)
curves = load_dataset("nafld-lipid").restrict(ages)
print(curves)

# %%
# One fit with epsilon = 1. Nothing is tuned, and nothing else is released.
fit = PrivateMean(epsilon=1, delta=1e-5, domain=ages, y_bounds=(0, 150)).fit(curves)
print(fit.privacy_)

# %%
# The band holds the whole mean curve with probability 95%, for sampling and for privacy noise together. It is wider
# where fewer people were measured.
figure, axes = plt.subplots(figsize=(7, 4))
fit.curve_.plot(ax=axes)
axes.set(xlabel="age (years)", ylabel="lipid (mg/dl)", title=f"{curves.n:,} people, epsilon = 1", ylim=(40, 65))
figure.tight_layout()

# %%
# Everything that follows from the released curve is free: where it is highest, with a confidence set, and its average
# over an interval.
print("highest at", fit.curve_.argmax(0.95))
print("average from 50 to 60:", fit.curve_.mean_over(50, 60))
print(fit.curve_.to_frame(np.arange(30, 81, 10)).round(2))
plt.show()
