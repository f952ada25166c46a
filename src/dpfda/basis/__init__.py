"""Functions on a public domain: bases, the moments of designs, and Sobolev ellipsoids."""

from dpfda.basis.basis import Basis, basis_from_dict, make_basis
from dpfda.basis.free_ends import FreeEnds
from dpfda.basis.splines import BSpline
from dpfda.basis.trigonometric import Cosine, Fourier, FourierExtension

__all__ = ["BSpline", "Basis", "Cosine", "Fourier", "FourierExtension", "FreeEnds", "basis_from_dict", "make_basis"]
