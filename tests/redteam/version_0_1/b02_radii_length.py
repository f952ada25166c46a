"""B2: radii of the wrong length leak the lengths of curves, and write outside a buffer into a later release.

Promised: a round moves by no more than its sensitivity when one curve is replaced; a release depends on its own
round.
Breaks: `EntrywiseGradient.radii` may have any length, `Plan.width` and `_refuse_absurd` say p r whatever it is.
Longer: the lanes beyond p r are never added to, but `collect` still takes off `additions * bits`, and `additions` is
the number of groups of eight curves OF ONE LENGTH: the surplus entry tells how many different lengths there are.
Shorter: `truncated_pass` writes p r lanes into room for fewer (and reads radii and magic beyond their end). What
lands in `rest_lanes` of the same room is added to the clipped rest of a later round of another study.
Root cause: the length of a plan's field is not validated; kernels trust shapes; work buffers are trusted to be zero.
Removed by: rule 1 (radii are derived, not sent), rule 2 (shapes checked once at every entry, buffers start from
zero).
"""

from __future__ import annotations

import harness

harness.source()

import numpy as np  # noqa: E402
from dpfda.engine.plan import Round  # noqa: E402
from dpfda.engine.quantities import ClippedRest, EntrywiseGradient, WhitenedGradient  # noqa: E402
from dpfda.kernels.store import room_for  # noqa: E402
from dpfda.messages import Query  # noqa: E402

from dpfda.basis import Fourier  # noqa: E402
from dpfda.curves import Curves  # noqa: E402
from dpfda.silo import Silo  # noqa: E402


def people(lengths: list[int]) -> Curves:
    """Curves with these numbers of points, all points at x = 1/2 with y = 0: only the lengths differ."""
    ids = np.repeat(np.arange(len(lengths)), lengths)
    return Curves.from_long(ids, np.full(ids.size, 0.5), np.zeros(ids.size))


def released(curves: Curves, radii: tuple[float, ...]) -> tuple[float, float]:
    """The last entry of a release and its noise sd, with the noise of a seed: the two cases differ in the data only."""
    silo = Silo(curves, epsilon=1.0, delta=1e-9, name="north", random_state=1)
    plan = harness.plan_of(curves.n, [Round((EntrywiseGradient(radii=radii),))], basis=Fourier(3))
    silo.join(plan, "run")
    answer = silo.release(Query("run", 0, {"iterate": np.zeros(3)}))
    return float(answer.values[-1]), float(answer.noise_sd[-1])


LONG = (1.0, 1.0, 1.0, 1.0)  # p r = 3
base, sd = released(people([3] * 8), LONG)
neighbour, _ = released(people([3] * 7 + [4]), LONG)
print("longer radii (4 for p r = 3), eight subjects, one of them with 4 visits in place of 3:")
print(f"  surplus entry {base:.6g} -> {neighbour:.6g}, a change of {abs(neighbour - base) / sd:.3g} noise sd")
leak = abs(neighbour - base) / sd

# Shorter: Fourier(5) and Fourier(4) have two harmonics each: radii of length 4 use the room of a later study of size 4.
room = room_for(4, 2)
before = room.rest_lanes.copy()
silo = Silo(people([3] * 8), epsilon=1.0, delta=1e-9, name="north", random_state=1)
silo.join(
    harness.plan_of(8, [Round((EntrywiseGradient(radii=(1.0,) * 4),))], basis=Fourier(5), shares=((0.5,),)), "first"
)
silo.release(Query("first", 0, {"iterate": np.zeros(5)}))
dirty = int(np.count_nonzero(room.rest_lanes != before))
print("shorter radii (4 for p r = 5):")
print(f"  the pass wrote {dirty} of 8 integers of `rest_lanes`, which no round of this kind has any business with")


def clipped_rest(first_study: bool) -> float:
    """A later, well-formed round of another study: what ball clipping took, of curves that are all zero."""
    silo = Silo(people([3] * 8), epsilon=1.0, delta=1e-9, name="north", random_state=2)
    if first_study:
        short = harness.plan_of(8, [Round((EntrywiseGradient(radii=(1.0,) * 4),))], basis=Fourier(5), shares=((0.1,),))
        silo.join(short, "first")
        silo.release(Query("first", 0, {"iterate": np.zeros(5)}))
    else:
        room.rest_lanes[:] = 0
    later = harness.plan_of(
        8, [Round((WhitenedGradient(), ClippedRest(reach=1.0)))], basis=Fourier(4), shares=((0.4, 0.4),)
    )
    silo.join(later, "later")
    arrays = {
        "iterate": np.zeros(4),
        "whitener": np.eye(4).ravel(),
        "length_prior": np.array([0.0, 1.0, 1.0]),
        "moves": np.zeros(0),
        "rest_direction": np.array([1.0, 0.0, 0.0, 0.0]),
    }
    return float(silo.release(Query("later", 0, arrays)).values[-1])


clean = clipped_rest(first_study=False)
spoilt = clipped_rest(first_study=True)
turned_up = spoilt != clean
print(f"  clipped rest of a later, well-formed study: {clean:.17g} without the first study, {spoilt:.17g} after it")
harness.verdict(
    leak > 10 and dirty > 0,
    f"one visit more moved a release by {leak:.2g} noise sd; short radii wrote {dirty} integers out of bounds"
    + (", which changed a later release of another study" if turned_up else " (too small to see in the later release)"),
    f"change of {leak:.2g} noise sd, {dirty} integers written out of bounds",
)
