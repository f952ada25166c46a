"""
A rate of change
================

**Question.** How fast do wages grow with work experience, and when does the growth slow down?

The data are 4,711 women of the US National Longitudinal Survey of Young Women. The slope of a log wage is a growth
rate. It is the derivative of the released curve, with a band of its own: no second fit, no second budget.
"""

# %%
# This set is not shipped with dpfda, because its R package is under the GPL: `pip install dpfda[bench]` brings it.
import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateMean
from dpfda.curves.datasets import get_dataset_info, load_dataset

info, curves = get_dataset_info("nlswork"), load_dataset("nlswork")
domain = (0, 20)
fit = PrivateMean(epsilon=2, delta=1e-5, domain=domain, y_bounds=info.y_bounds).fit(curves.restrict(domain))

# %%
# Slopes need a basis that is free at the ends of the domain; the default is.
growth = (100 * fit.curve_.derivative()).rename("growth, percent a year")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
fit.curve_.plot(ax=left)
left.set(xlabel="experience (years)", ylabel="log wage (dollars an hour)", title=f"{curves.n:,} women, epsilon = 2")
growth.plot(ax=right)
right.axhline(0, color="0.3", linewidth=1)
right.set(xlabel="experience (years)", ylabel="growth (percent a year)", ylim=(-15, 25), title="its slope")
figure.tight_layout()

# %%
# The average growth over ten years follows from the two ends of the interval, so it is far more precise than the
# slope at a point.
for low, high in [(1, 6), (6, 11), (1, 11)]:
    print(growth.mean_over(low, high))
print(growth.to_frame(np.array([2.0, 5.0, 10.0])).round(1))
plt.show()
