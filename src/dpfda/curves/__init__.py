"""What the data are: curves of many subjects, and the tables, files and databases that they are read from."""

from dpfda.curves.curves import Curves

__all__ = ["Curves"]
