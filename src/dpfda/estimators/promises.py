"""An (epsilon, delta) and what is said of it before it is spent: a delta that promises nothing, a silo that allows less."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from dpfda import _validate
from dpfda._blas import one_blas_thread
from dpfda.errors import BudgetExceeded, InvalidInput, LargeDeltaWarning
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.statement import PrivacyStatement
from dpfda.protocol.terms import SiloTerms, StudyTerms
from dpfda.protocol.transport import Transport
from dpfda.silo.silo import Silo
from dpfda.transports.in_process import InProcessTransport

_Found = TypeVar("_Found")
LARGEST_DELTA = 0.1  # beyond it nobody can mean it, however few the subjects


def refuse_absurd_delta(name: str, delta: float) -> float:
    """A delta between 0 and 1 that could be meant; `name` is how the user wrote it."""
    number = _validate.fraction(name, delta)
    if number > LARGEST_DELTA:
        raise InvalidInput(
            f"{name} must be far below one over the number of subjects, for instance 1e-5, got {number:g}: such a promise "
            f"would permit publishing every record with probability {number:g}; nothing was spent."
        )
    return number


def warn_of_large_delta(silo_terms: Sequence[SiloTerms]) -> None:
    """From public numbers alone, before anything is spent; a delta that promises nothing is refused."""
    for silo in silo_terms:
        refuse_absurd_delta("delta", silo.delta)
    for silo in silo_terms:
        if silo.delta * silo.n >= 1:
            warnings.warn(
                f"delta={silo.delta:g} is large for {silo.n:,} subjects: this promise would permit publishing a whole "
                "record; choose it far below one over the number of subjects.",
                LargeDeltaWarning,
                3,
            )
            return


def warn_of_smaller_promise(silos: Sequence[Silo], epsilon: float | None, delta: float | None) -> None:
    """Say that a silo allows less than the estimator asks for: the result will be less precise than expected."""
    for silo in silos:
        for name, asked, allowed in (("epsilon", epsilon, silo.epsilon), ("delta", delta, silo.delta)):
            if asked is not None and _validate.real(name, asked) > allowed:
                warnings.warn(
                    f"{name}={asked:g} is more than the {allowed:g} that silo {silo.name!r} allows for one study: "
                    f"{allowed:g} is spent there; leave {name} out to use what each silo allows.",
                    stacklevel=4,
                )
                return


def name_design_bounds(privacy: PrivacyStatement, columns: Sequence[str]) -> PrivacyStatement:
    """The statement with its `design_bounds` by the names of the design columns."""
    bounds = privacy.public_inputs.get("design_bounds")
    if bounds is None or isinstance(bounds, Mapping):
        return privacy
    named = dict(zip(columns, bounds, strict=True))
    return replace(privacy, public_inputs={**privacy.public_inputs, "design_bounds": named})


def run_on_silos(
    run_terms: Callable[[StudyTerms, Transport, str, Callable[[int, int], None] | None], _Found],
    terms: StudyTerms,
    silos: Sequence[Silo],
    run: str | None,
    progress: Callable[[int, int], None] | None,
) -> _Found:
    """What a study of these terms finds on silos of this process; under a fresh name if it has none."""
    name = secrets.token_hex(8) if run is None else _validate.name("run", run)
    try:
        with one_blas_thread():
            return run_terms(terms, InProcessTransport(silos), name, progress)
    except BudgetExceeded as refusal:
        raise explain_delta(refusal, silos, terms, name) from refusal


def explain_delta(refusal: BudgetExceeded, silos: Sequence[Silo], terms: StudyTerms, run: str) -> BudgetExceeded:
    """The refusal, or a sentence about delta if the same study with the delta of the ledger would have fitted."""
    for silo in silos:
        allowed = silo.ledger.delta
        if silo.delta > allowed and _fits(silo, _with_delta(terms, silo.name, allowed), run):
            return BudgetExceeded(
                f"delta={silo.delta:g} of silo {silo.name!r} is above the delta = {allowed:g} of its ledger, and with it "
                f"epsilon = {silo.epsilon:g} costs more than is left; choose delta={allowed:g} or less; nothing was spent."
            )
    return refusal


def _with_delta(terms: StudyTerms, silo: str, delta: float) -> StudyTerms:
    return replace(
        terms, silos=tuple(replace(each, delta=delta) if each.name == silo else each for each in terms.silos)
    )


def _fits(silo: Silo, terms: StudyTerms, run: str) -> bool:
    try:
        silo.ledger.check(make_plan(terms).events(silo.name), run)
    except BudgetExceeded:
        return False
    return True
