"""Answers from which nothing can be computed: a round is learnt without the silo that sent them.

A hostile silo chooses its numbers, within what noise allows. If arithmetic fails at some of them, it would fail at every
resume, since answers are on record; so the silo counts as one that missed the round, and the others' study goes on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from dpfda.errors import TransportError
from dpfda.methods.adaptive import rounds
from dpfda.methods.adaptive.state import State, Visits
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan

_FAILURES = (ArithmeticError, ValueError, IndexError)
_TRIED = 2  # silos, of those that are least like the others, that are left out to see who makes it fail


def learn_from_usable(
    plan: Plan, state: State | None, index: int, releases: Mapping[str, Release], known: Visits | None = None
) -> State:
    """What is known after round `index`; its `unusable` are the silos without which a round had to be learnt.

    `known` as in `rounds.learn`. A silo with nearly all of the study's precision may have led earlier rounds to where
    nobody's answer helps: then the study ends with a sentence, at every resume.
    """
    kept = dict(releases)
    try:
        return _learn(plan, state, index, kept, known)
    except _FAILURES as error:
        failed = error
    while len(kept) > 1:
        odd = _sort_by_oddness(kept)
        for name in odd[:_TRIED]:
            rest = {other: release for other, release in kept.items() if other != name}
            try:
                learnt = _learn(plan, state, index, rest, known)
            except _FAILURES:
                continue
            return dataclasses.replace(learnt, unusable=learnt.unusable | (releases.keys() - rest.keys()))
        del kept[odd[0]]
    raise TransportError(
        f"The answers of round {index} lead to no numbers, whichever silo is left out: {_sort_by_oddness(releases)[0]!r} is "
        "the least like the others. Nothing further is asked; propose the study again without it."
    ) from failed


def _learn(plan: Plan, state: State | None, index: int, releases: Mapping[str, Release], known: Visits | None) -> State:
    """As `rounds.learn`; fails too where the next question would be none, or the result no numbers."""
    learnt = rounds.learn(plan, state, index, releases, known)
    if learnt.result is not None:
        numbers = [each for each in (learnt.result.estimate, learnt.result.band_covariance) if each is not None]
    else:
        numbers = list(rounds.question(plan, learnt, index + 1).values())
    if not all(np.isfinite(each).all() for each in numbers):
        raise ArithmeticError("the answers lead to what is no number")
    return learnt


def _sort_by_oddness(releases: Mapping[str, Release]) -> list[str]:
    """Silos by how far they are from the median of all, in sd of their own noise; the farthest first."""
    middle = np.median([release.values for release in releases.values()], axis=0)

    def distance(name: str) -> float:
        release = releases[name]
        return float(np.max(np.abs(release.values - middle) / release.noise_sd))

    return sorted(releases, key=distance, reverse=True)
