"""One silo spread over the workers of a Dask cluster inside its organisation."""

from dpfda.spread.curves import SpreadCurves

__all__ = ["SpreadCurves"]
