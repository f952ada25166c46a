"""Data larger than memory: nameless scratch files, and curves whose arrays are maps of them."""

from dpfda.storage.mapped_curves import CurvesWriter
from dpfda.storage.scratch import ScratchFile, scratch_folder

__all__ = ["CurvesWriter", "ScratchFile", "scratch_folder"]
