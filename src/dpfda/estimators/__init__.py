"""The front door: scikit-learn style estimators of the mean function and of varying coefficients."""

from dpfda.estimators.coefficients import PrivateVaryingCoefficients
from dpfda.estimators.mean import PrivateMean

__all__ = ["PrivateMean", "PrivateVaryingCoefficients"]
