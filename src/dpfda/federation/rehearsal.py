"""A rehearsal at a site: a study's rounds on made-up curves of its shape, over the real network.

The process that runs this knows a name, a public key and a connection. It has no path to data, policy or ledger; its answers
are signed with a key of its own that ends with it, as documents of a kind that no real answer has.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dpfda._typing import Floats
from dpfda.curves.curves import Curves
from dpfda.errors import ProtocolError
from dpfda.federation.keys import make_signing_key, public_text
from dpfda.federation.proposal import open_terms
from dpfda.federation.signed import INVITATION
from dpfda.federation.signing import REHEARSAL, REHEARSED, Subject, open_message, sign_message
from dpfda.federation.study import name_study
from dpfda.protocol.messages import Query
from dpfda.protocol.terms import StudyTerms
from dpfda.silo.silo import Silo

PREFIX = "rehearsal-"
MOST_SUBJECTS, MOST_POINTS = 2000, 50  # a rehearsal shows that everything works, not how long a large site takes


def make_rehearsal_terms(terms: StudyTerms) -> StudyTerms:
    """The same study under another name, with few subjects: it can never be taken for the study itself."""
    silos = tuple(replace(silo, n=min(silo.n, MOST_SUBJECTS)) for silo in terms.silos)
    return replace(terms, name=(PREFIX + terms.name)[:63], silos=silos)


def make_up_curves(terms: StudyTerms, site: str, seed: int | None = None) -> Curves:
    """Curves of the study's shape, from its public values alone."""
    rng, mine = np.random.default_rng(seed), terms.silo(site)
    points = max(1, min(MOST_POINTS, round(mine.points_per_curve or 5)))
    ids = np.repeat(np.arange(mine.n), points)
    low, high = terms.domain
    x = rng.uniform(low, high, ids.size)
    bottom, top = terms.y_bounds
    wave = np.sin(2 * math.pi * (x - low) / (high - low))
    y = (bottom + top) / 2 + (top - bottom) * (0.1 * wave + rng.normal(0.0, 0.05, ids.size))
    design = _make_up_design(terms, mine.n, rng)
    return Curves.from_long(ids, x, np.clip(y, bottom, top), design[ids])


def _make_up_design(terms: StudyTerms, n: int, rng: np.random.Generator) -> Floats:
    columns = [np.ones((n, 1))] if terms.intercept else []
    for covariate in terms.covariates:
        if covariate.bounds is not None:
            columns.append(rng.uniform(*covariate.bounds, (n, 1)))
        else:
            chosen = rng.integers(len(covariate.levels), size=n)
            columns.append((chosen[:, None] == np.arange(1, len(covariate.levels))).astype(np.float64))
    return np.hstack(columns)


class Rehearsal:
    """Answers the signed questions of one rehearsal."""

    def __init__(self, site: str, coordinator: Ed25519PublicKey) -> None:
        self._site, self._coordinator, self._key = site, coordinator, make_signing_key()
        self._silo: Silo | None = None
        self._digest, self.rounds = "", 0

    def __call__(self, message: bytes) -> bytes:
        """Bytes in, bytes out; anything that is not a rehearsal's question raises."""
        subject, payload = open_message(REHEARSAL, message, self._coordinator)
        answer = self._join(subject, payload) if subject.round == INVITATION else self._release(subject, payload)
        return sign_message(REHEARSED, replace(subject, site=self._site), answer, self._key)

    def _join(self, subject: Subject, payload: bytes) -> bytes:
        terms = open_terms(payload, self._coordinator)
        small = max(silo.n for silo in terms.silos) <= MOST_SUBJECTS
        if not terms.name.startswith(PREFIX) or not small or terms.digest() != subject.terms:
            raise ProtocolError("These are not the terms of a rehearsal.")
        mine = terms.silo(self._site)
        silo = Silo(
            make_up_curves(terms, self._site), name=self._site, epsilon=mine.epsilon, delta=mine.delta,
            points_per_curve=mine.points_per_curve,
        )  # its ledger is in memory # fmt: skip
        silo.join(terms, name_study(terms))
        self._silo, self._digest = silo, terms.digest()
        return public_text(self._key).encode()

    def _release(self, subject: Subject, payload: bytes) -> bytes:
        if self._silo is None or subject.terms != self._digest:
            raise ProtocolError("This rehearsal has not begun.")
        query = Query.decode(payload)
        if (query.run, query.round) != (subject.run, subject.round):
            raise ProtocolError("The question is about a different round from its signature.")
        self.rounds += 1
        return self._silo.release(query).encode()
