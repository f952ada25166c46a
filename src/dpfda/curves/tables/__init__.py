"""Tables as analysts keep them (files, folders, databases; long and wide) turned into `Curves`.

`load_curves` is the one entrance. Nothing here releases anything: what it returns goes to a `Silo`, and what it has to say
about the data goes to their owner only.
"""

from dpfda.curves.tables.covariates import Covariate
from dpfda.curves.tables.loading import Loaded, curves_from_source, load_curves
from dpfda.curves.tables.reading import Domain, Reading
from dpfda.curves.tables.source import Source, find_source

__all__ = ["Covariate", "Domain", "Loaded", "Reading", "Source", "curves_from_source", "find_source", "load_curves"]
