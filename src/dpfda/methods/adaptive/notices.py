"""Sentences that a reader of the result must see: why a band is wide, and where the estimate says little.

From released quantities and public declarations only.
"""

from __future__ import annotations

import numpy as np

from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.lengths import list_laws
from dpfda.methods.adaptive.state import State
from dpfda.protocol.plan import Plan
from dpfda.protocol.transforms import NO_TRANSFORM


def write_notices(plan: Plan, state: State) -> tuple[str, ...]:
    """What holds of this result, the gravest first."""
    found = [
        _notice_hardly_filled(plan, state),
        _notice_unusable(state),
        _notice_odd_sites(plan, state),
        _notice_left_out(state),
        _notice_weights(plan, state),
        _notice_skewness(plan, state),
        _notice_hidden_subjects(plan, state),
        _notice_rare_events(plan, state),
        _notice_declarations(plan, state),
        _notice_transform(plan, state),
        _notice_visits(plan, state),
        _notice_gaps(plan, state),
    ]
    return tuple(sentence for sentence in found if sentence is not None)


def _notice_hardly_filled(plan: Plan, state: State) -> str | None:
    if not state.hardly_filled:
        return None
    return (
        "So few subjects have points in the domain that noise hides them: the band is nearly as wide as the bounds, and the "
        "estimate says next to nothing. Check the columns and the domain, or use more subjects or a larger epsilon."
    )


def _notice_unusable(state: State) -> str | None:
    if not state.unusable:
        return None
    named = ", ".join(repr(name) for name in sorted(state.unusable))
    return (
        f"Answers of these sites were left out, since nothing could be computed with them: {named}. In these rounds the "
        "estimate uses the other sites' answers; ask the owners what happened there."
    )


def _notice_odd_sites(plan: Plan, state: State) -> str | None:
    flagged = state.oddness.flagged
    if not flagged:
        return None
    named = ", ".join(repr(name) for name in flagged)
    said = f"These sites are unlike all others, judging by their releases: {named}. "
    if state.oddness.trust:
        kept = ", ".join(f"{weight:.1%}" for weight in state.oddness.trust.values())
        said += f"The terms have robust_sites, so their weights are reduced to {kept}. "
    elif plan.assumptions.robust_sites:
        said += "With so few sites they count like any other. "
    else:
        said += "The terms have robust_sites = false, so they count like any other. "
    return said + "Check the unit of y, the columns and the codes for missing values there."


def _notice_left_out(state: State) -> str | None:
    if not state.left_out:
        return None
    named = ", ".join(repr(name) for name in sorted(state.left_out))
    return (
        f"These sites missed the first round, which asks when subjects are seen: {named}. Sites may differ in that, so the "
        "gradients of these sites are not used in the estimate if there are any others."
    )


def _notice_weights(plan: Plan, state: State) -> str | None:
    doubt = state.weights.pooled.doubt
    if doubt < constants.VAGUE_WEIGHT:
        return None
    return (
        f"How many visits a subject has, of at most visit_cap = {plan.scaling.visit_cap}, is only known to within about "
        f"{doubt:.0%}: a visit_cap nearer to the usual number of visits, more subjects or a larger epsilon would help."
    )


def _notice_skewness(plan: Plan, state: State) -> str | None:
    if plan.assumptions.symmetric or state.posterior is None:
        return None
    bias = 0.0
    for name, each in state.measured.items():
        gain = each.find_gain(state.posterior.covariance, state.informations[name])
        bias += float(np.trace(gain @ each.bias @ gain.T))
    if bias < constants.NOTABLE_BIAS * float(np.trace(state.posterior.covariance)):
        return None
    if plan.assumptions.outcome == "binary" or state.two_valued > constants.TWO_VALUED:
        return (
            "The band allows for clipping, which may pull the share towards the more frequent value: more subjects or a "
            "larger epsilon would narrow it."
        )
    positive = plan.scaling.y_bounds[0] >= 0 and plan.scaling.transform == NO_TRANSFORM
    helps = "a larger epsilon or, for positive y, transform='log'" if positive else "or a larger epsilon"
    return (
        "The band allows for skewed outcomes, which clipping may pull towards the bulk of the data: more subjects"
        f"{', ' if positive else ' '}{helps} would narrow it."
    )


def _notice_hidden_subjects(plan: Plan, state: State) -> str | None:
    """Where bounds are wide and the mean is between them, noise hides subjects who would move the mean out of the band."""
    covariance = None if state.result is None else state.result.band_covariance
    if covariance is None or state.sides is None or state.lengths is None or state.question is None:
        return None
    if plan.assumptions.symmetric or state.two_valued > constants.TWO_VALUED:
        return None
    first = slice(0, state.longer.size)
    half_width = constants.USUAL_CRITICAL * float(np.sqrt(np.trace(covariance[first, first])))
    unseen = state.sides.sd * (1 - state.question.room.suspect(state.lengths))  # the rest is in the band
    if unseen * (1 + abs(float(state.open_now[0][0]))) < half_width:
        return None
    few = _round_up(sum(silo.n for silo in plan.silos) * unseen)
    return (
        f"About {few:,} subjects whose values all lie near one bound of y, far from all others, would not be told from "
        "noise, and would move the mean by more than the band allows for. If there may be such subjects, choose bounds that "
        "they do not reach; more subjects or a larger epsilon would help, too."
    )


def _notice_rare_events(plan: Plan, state: State) -> str | None:
    if state.two_valued < constants.CLEARLY_TWO_VALUED:
        return None
    n = sum(silo.n for silo in plan.silos)
    level, sd = float(state.open_now[0][0]), float(np.sqrt(state.open_now[1][0, 0]))
    share = max(1 - abs(level) + sd, 0.0) / 2
    if share > constants.RARE:
        return None
    few = _round_up(n * min(1.0, constants.CARRIERS_PER_SHARE * share))
    carried = f"fewer than about {few:,} subjects carry them, so the band is wide in proportion to the estimate"
    if plan.assumptions.outcome == "binary":
        return f"Rare events: {carried}."
    bound = plan.scaling.y_bounds[1 if level > 0 else 0]
    return (
        f"Nearly all values lie at a bound of y ({bound:g}) or beyond it. If the others are rare events, {carried}; if not, "
        "check the unit of y and its bounds."
    )


def _notice_declarations(plan: Plan, state: State) -> str | None:
    inside, sd = state.inside
    if plan.assumptions.outcome == "binary" and inside > constants.CLEAR_SDS * sd:
        return (
            f"outcome='binary' was declared, but about {min(inside, 1.0):.0%} of the values lie between the bounds; "
            "leave the declaration out."
        )
    if plan.assumptions.symmetric and state.lengths is not None:
        laws = list_laws()
        further = float(state.lengths.all_weights() @ (laws.share > 0))
        if further > constants.CLEARLY_TWO_VALUED:
            return (
                "assume_symmetric=True was declared, but some subjects lie far from all others: if they lie on one side, "
                "the estimate is biased and its band too narrow."
            )
    return None


def _notice_transform(plan: Plan, state: State) -> str | None:
    share, sd = state.at_lower
    if plan.scaling.transform != "log" or share < max(constants.MANY_AT_BOUND, constants.CLEAR_SDS * sd):
        return None
    return (
        f"transform='log' was chosen, but about {min(share, 1.0):.0%} of the values lie at the lower bound of y "
        f"({plan.scaling.y_bounds[0]:g}) or below it: the geometric mean depends on where that bound is. Use 'log1p', or no "
        "transform."
    )


def _notice_visits(plan: Plan, state: State) -> str | None:
    times = plan.assumptions.visit_times
    if not times:
        return None
    mass = float(state.design.mass[-len(times) :].sum() / state.design.mass.sum())
    if mass < constants.MOSTLY_VISITS:
        return None
    return f"About {mass:.0%} of the points lie at the {len(times)} visit times: between them nothing was measured."


def _notice_gaps(plan: Plan, state: State) -> str | None:
    u, seen = state.design.nodes.u, state.design.seen_near()
    order = np.argsort(u)
    u, thin = u[order], seen[order] < constants.THIN
    low, high = plan.basis.domain
    spans = []
    edges = np.flatnonzero(np.diff(np.concatenate([[0], thin.astype(int), [0]])))
    for first, last in zip(edges[::2], edges[1::2] - 1, strict=True):
        if u[last] - u[first] >= constants.LEAST_GAP:
            ends = (low + (high - low) * u[first], low + (high - low) * u[last])
            spans.append(" to ".join(f"{float(f'{end:.3g}'):.10g}" for end in ends))
    if not spans:
        return None
    return f"Few points lie where x is {' and '.join(spans)}: the curve there is an extrapolation with a wide band."


def _round_up(number: float) -> int:
    """To two digits."""
    digits = max(int(np.floor(np.log10(max(number, 1.0)))) - 1, 0)
    step = float(f"1e{digits}")
    return int(np.ceil(number / step) * step)
