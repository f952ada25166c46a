"""
Two groups and their difference
===============================

**Question.** Do men and women differ in this lipid, and at which ages?

One fit of varying coefficients releases both curves with their joint law. The difference has its own band, which is
narrower than a comparison of two separate bands would suggest.
"""

# %%
# The data are a table with one row for each visit. `covariates` gives the public bounds of each covariate.
import matplotlib.pyplot as plt

from dpfda import Curves, PrivateVaryingCoefficients
from dpfda.curves.datasets import load_frame

ages, covariates = (25, 85), {"male": (0, 1)}
visits = load_frame("nafld-lipid")
curves = Curves.from_frame(visits, id="id", x="x", y="y", covariates=covariates).restrict(ages)
model = PrivateVaryingCoefficients(epsilon=1, delta=1e-5, domain=ages, y_bounds=(0, 150), covariates=covariates)
model.fit(curves)

# %%
# Two curves, and their difference. Asking costs no further epsilon.
women, men = model.curve_at(male=0).rename("women"), model.curve_at(male=1).rename("men")
difference = (women - men).rename("women minus men")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
women.plot(ax=left)
men.plot(ax=left)
left.set(xlabel="age (years)", ylabel="lipid (mg/dl)", ylim=(30, 75), title="mean curves")
left.legend()
difference.plot(ax=right)
right.axhline(0, color="0.3", linewidth=1)
right.set(xlabel="age (years)", ylabel="difference (mg/dl)", ylim=(-5, 30), title="women minus men")
figure.tight_layout()

# %%
# Is the difference zero everywhere? The test names the ages at which it is not. Is it the same at all ages?
print(difference.is_zero(0.95))
print(difference.is_constant(0.95))
print("average difference from 40 to 70:", difference.mean_over(40, 70))
plt.show()
