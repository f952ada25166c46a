"""Sites that differ: the curves of a fit to several silos, site by site and all together. No epsilon is spent on it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.basis.basis import Basis
from dpfda.errors import InvalidInput
from dpfda.inference.curve import ReleasedCurve
from dpfda.inference.curve_scale import CurveScale, limit_means
from dpfda.inference.form import Form
from dpfda.inference.law import Law
from dpfda.inference.showing import make_frame
from dpfda.methods.adaptive.sites import Gaussian, SiteLaw
from dpfda.protocol.scaling import Scaling


@dataclass(frozen=True, repr=False)
class Sites:
    """What separate releases say of the sites of a fit: `estimator.sites_`.

    Attributes
    ----------
    between_sd : (float, float)
        How much sites differ in level: estimate and standard error, in units of (transformed) y.
    probability : float
        How likely it is that sites differ at all, given the releases.
    i_squared : (float, float, float)
        I^2 of the level, with its 95% interval: the part of the differences between the sites' own levels that is real,
        not sampling error or noise.
    heterogeneity : dict
        For each site the share of its own deviation that it keeps (an I^2 of its own): 0 if all sites are alike or
        nothing is known of it, near 1 if it speaks for itself.
    oddness : dict
        For each of three sites or more, how likely it is to be unlike all others: garbage, another unit, shuffled columns.
    flagged : tuple of str
        Sites that are more likely odd than not.
    weights : dict
        What each site counts for: 1, or less for flagged sites of a study with ``robust_sites`` and four sites or more.
        The mean over subjects, or over visits, is that of sites so weighted.
    units : {"subjects", "visits"}
        What counts equally in the mean over all sites, as in the study.
    """

    names: tuple[str, ...]
    between_sd: tuple[float, float]
    probability: float
    i_squared: tuple[float, float, float]
    heterogeneity: dict[str, float]
    oddness: dict[str, float]
    flagged: tuple[str, ...]
    weights: dict[str, float]
    units: str
    _law: SiteLaw
    _basis: Basis
    _scaling: Scaling
    _limits: Interval

    @classmethod
    def of(cls, law: SiteLaw, basis: Basis, scaling: Scaling) -> Sites:
        """From the coefficients of the method to the user's units."""
        scale = scaling.y_scale
        spread = law.level_sd[0] * scale, law.level_sd[1] * scale
        columns = len(scaling.design_bounds)
        longer = basis.resize(len(law.sites.mean) // columns)
        odd = law.oddness
        weights = {name: odd.trust.get(name, 1.0) for name in law.names}
        known = law.different, law.heterogeneity, dict(law.shrinkage), dict(odd.probability), odd.flagged, weights
        units = "subjects" if scaling.visit_cap is None else "visits"
        return cls(
            law.names, spread, *known, units, law, longer, scaling, limit_means(scaling.transform, scaling.y_bounds)
        )

    def __repr__(self) -> str:
        share, low, high = self.i_squared
        level, error = self.between_sd
        flagged = f", unlike all others: {', '.join(self.flagged)}" if self.flagged else ""
        return (
            f"Sites({len(self.names)} sites{flagged}\n"
            f"      I^2 of the level {share:.0%} ({low:.0%} to {high:.0%}), between sites: sd {level:.3g} ± {error:.2g}\n"
            f"      .to_frame(), .curve(name), .mean('{self.units}' or 'sites'), .new_site())"
        )

    def curve(self, name: str) -> ReleasedCurve:
        """A site's own curve, which borrows strength from the others as far as they are alike."""
        if name not in self.names:
            raise InvalidInput(f"name must be one of the sites {', '.join(map(repr, self.names))}, got {name!r}.")
        return self._make(self._law.each[name], name)

    def mean(self, over: str | None = None) -> ReleasedCurve:
        """The mean over all subjects of these sites, or over "sites", a population of them, each counting equally.

        Left out, `over` is "subjects", or "visits" if the study weighs visits alike.
        """
        over = _validate.choice("over", self.units if over is None else over, (self.units, "sites"))
        return self._make(self._law.sites if over == "sites" else self._law.subjects, self.name_mean(over))

    def name_mean(self, over: str | None = None) -> str:
        """What this mean is called."""
        return f"mean over {over or self.units}"

    def new_site(self) -> ReleasedCurve:
        """The curve of a site that did not take part; its band is one for prediction."""
        return self._make(self._law.new_site, "a new site")

    def to_frame(self, x: Any = None, level: float = 0.95) -> Any:
        """A forest table: each site's average over the domain with its interval, what it keeps of its own, its weight."""
        rows = [(name, self.curve(name)) for name in self.names]
        rows += [(self.name_mean(), self.mean()), ("a new site", self.new_site())]
        found = [curve.mean_over().interval(level) for _, curve in rows]
        return make_frame(
            {
                "site": [name for name, _ in rows],
                "estimate": np.array([curve.mean_over().estimate for _, curve in rows]),
                "low": np.array([low for low, _ in found]),
                "high": np.array([high for _, high in found]),
                "keeps": np.array([self.heterogeneity.get(name, np.nan) for name, _ in rows]),
                "weight": np.array([self.weights.get(name, np.nan) for name, _ in rows]),
            }
        )

    def _make(self, law: Gaussian, name: str) -> ReleasedCurve:
        columns = len(self._scaling.design_bounds)
        mixing = self._scaling.mixing()
        wide = np.kron(mixing, np.eye(self._basis.size))
        mean = self._scaling.to_user_units(law.mean.reshape(columns, -1))
        row = np.zeros(columns)
        row[0] = 1.0
        form = Form(Law(self._basis, mean, np.asarray(wide @ law.covariance @ wide.T)), {0: row})
        curve = ReleasedCurve((form,), 0.0, self._limits, scale=CurveScale(self._scaling.transform))
        return dataclasses.replace(curve, name=name)
