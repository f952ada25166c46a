"""
From pandas, polars, Arrow and scikit-fda, and on to R
======================================================

**Question.** My data are in a data frame already, and my colleagues work with other tools. What do I have to convert?

Nothing by hand. The same people in four containers are the same curves, and a result can go on to pandas, scikit-fda
and R.
"""

# %%
import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pyarrow as pa

import dpfda
from dpfda import Curves, PrivateMean
from dpfda.curves.datasets import load_frame

visits = load_frame("pbcseq")  # pandas
containers = {"pandas": visits, "polars": pl.from_pandas(visits), "Arrow": pa.Table.from_pandas(visits)}
key = bytes(range(32))  # any 32 bytes will do for a comparison
for name, table in containers.items():
    curves = Curves.from_frame(table, id="id", x="x", y="y")
    print(f"{name:>7}: {curves}, fingerprint {curves.fingerprint(key)[:8].hex()}...")

# %%
# An estimator takes any of these tables directly.
fit = PrivateMean(epsilon=4, delta=1e-4, domain=(0, 6), y_bounds=(-3, 4))
fit.fit(containers["polars"].filter(pl.col("x") <= 6), id="id", x="x", y="y")

# %%
# On to scikit-fda: the released curve as a function of its own kind, on which its plots, registration and the rest
# work.
function = fit.curve_.to_skfda()
print(type(function).__name__, function.domain_range)

# %%
# On to R, or to a colleague without data: a result file answers questions by itself. In R, with the package in
# ``r/dpfda``:
#
# .. code-block:: r
#
#    fit <- dp_read("bilirubin.json")
#    band(curve_at(fit), c(1, 3, 5))
#
path = Path(tempfile.mkdtemp()) / "bilirubin.json"
dpfda.save(fit, path)
loaded = dpfda.load(path)
print(json.loads(path.read_text())["schema"], loaded.curve_.to_frame(np.array([1.0, 3.0, 5.0])).round(2), sep="\n")

# %%
figure, axes = plt.subplots(figsize=(7, 4))
loaded.curve_.plot(ax=axes)
x = np.linspace(0, 6, 101)
axes.plot(x, function(x)[0, :, 0], linestyle=":", color="black", label="by way of scikit-fda")
axes.set(xlabel="years since entry", ylabel="log bilirubin", title="312 patients, epsilon = 4, from the result file")
axes.legend()
figure.tight_layout()
plt.show()
