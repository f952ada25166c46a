"""
A silo on a Dask cluster
========================

**Question.** The records of one organisation do not fit on one machine, or must stay on the machines where they are.
Does the answer change?

It does not, to the last bit: workers sum exact integers, so it does not matter how many there are. Workers, scheduler
and head are one trust border; only the head adds noise and releases.
"""

# %%
# A table as the organisation has it, in two files. Here each has half of the people.
import tempfile
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpfda import Curves, PrivateMean, Silo
from dpfda.curves.datasets import load_frame

AGES = (25, 85)


def load_part(path: str) -> Curves:
    """What a worker does: read its own file."""
    return Curves.from_frame(pd.read_parquet(path), id="id", x="x", y="y").restrict(AGES)


def main() -> None:
    """Fit on two worker processes, and draw."""
    from distributed import Client, LocalCluster

    from dpfda.silo.cluster import DaskCurves

    visits = load_frame("nafld-lipid")
    halves = [visits[visits["id"] % 2 == part] for part in (0, 1)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, f"part-{number}.parquet")) for number in (0, 1)]
        for half, path in zip(halves, paths, strict=True):
            half.to_parquet(path)
        local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=folder)
        with local as cluster, Client(cluster) as client:
            silo = Silo(DaskCurves(client, [partial(load_part, path) for path in paths]), epsilon=1, delta=1e-5)
            fit = PrivateMean(domain=AGES, y_bounds=(0, 150)).fit(silo)
    print(fit.privacy_)
    figure, axes = plt.subplots(figsize=(7, 4))
    fit.curve_.plot(ax=axes)
    axes.set(xlabel="age (years)", ylabel="lipid (mg/dl)", ylim=(40, 65))
    axes.set_title(f"{visits['id'].nunique():,} people on two workers, epsilon = 1")
    figure.tight_layout()
    print(fit.curve_.to_frame(np.arange(30, 81, 10)).round(2))


# %%
# Worker processes import this file, so the work stands behind the usual guard.
if __name__ == "__main__":
    main()

# %%
# What leaves a worker in a round are sums of a few thousand integers. With a real cluster, give the scheduler's URL
# in the place of the client: ``DaskCurves("tls://head:8786", ...)``; on the command line, ``dpfda fit ... --engine
# tls://head:8786``. For Spark, ``dpfda.curves.spark.write_by_id`` writes Parquet files in the order of ids.
plt.show()
