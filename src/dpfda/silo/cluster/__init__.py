"""One silo spread over the workers of a Dask cluster inside its organisation."""

from dpfda.silo.cluster.dask_curves import DaskCurves

__all__ = ["DaskCurves"]
