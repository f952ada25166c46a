"""Functions on a public domain: bases, their trigonometric moments, and Sobolev ellipsoids."""

from dpfda.basis.basis import Basis, basis_from_dict, make_basis

__all__ = ["Basis", "basis_from_dict", "make_basis"]
