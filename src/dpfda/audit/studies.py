"""The audit of whole studies: everything that a silo says in one, to a coordinator that keeps it all."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpfda._typing import Floats
from dpfda.audit.cases import DELTA, EPSILON, NAME, OTHER, Case, make_silo, ordinary_curves
from dpfda.audit.findings import Collector, Result
from dpfda.audit.hypothesis_tests import LEVEL, dependent, separation, wrong_size
from dpfda.audit.releases import LARGE, grid_points
from dpfda.audit.search import TOLERANCE, Subject, bounded, random_subject, replaced
from dpfda.curves.curves import Curves
from dpfda.methods.run import run_study
from dpfda.privacy.accounting import gaussian_epsilon, mu_for, mu_squared, price_by_pld
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import StudyTerms
from dpfda.silo.examination import Examiner
from dpfda.silo.silo import Silo
from dpfda.transports.in_process import InProcessTransport

_PER_LEDGER = 4
_PLD_ERROR = 0.02  # of the numerical composition, relative: it errs upwards


class Recorder:
    """A transport that keeps the transcript and looks at the ledger after every round."""

    def __init__(self, silos: Sequence[Silo]) -> None:
        self._inner = InProcessTransport(silos)
        self.ledger = silos[0].ledger
        self.rounds: list[tuple[Query, Mapping[str, Release]]] = []
        self.spent: list[float] = []

    def open(self, terms: StudyTerms, run: str) -> None:
        """Propose the terms."""
        self._inner.open(terms, run)
        self.spent.append(self.ledger.spent().mu_squared)

    def gather(self, query: Query) -> Mapping[str, Release]:
        """Ask, and keep question and answers."""
        answers = self._inner.gather(query)
        self.rounds.append((query, answers))
        self.spent.append(self.ledger.spent().mu_squared)
        return answers


class Playback:
    """Gives the recorded answers to whoever asks, and notes whether the questions are the recorded ones."""

    def __init__(self, rounds: list[tuple[Query, Mapping[str, Release]]]) -> None:
        self._rounds = rounds
        self.same = True

    def open(self, terms: StudyTerms, run: str) -> None:
        """Nobody is asked."""

    def gather(self, query: Query) -> Mapping[str, Release]:
        """The recorded answers of this round."""
        asked, answers = self._rounds[query.round]
        self.same = self.same and asked.digest() == query.digest()
        return answers


@dataclass(frozen=True)
class Neighbours:
    """Two data sets of the audited silo, the curves of the others, and the terms that all of them agree to."""

    case: Case
    base: Curves
    first: Subject
    second: Subject
    others: tuple[Curves, ...]
    terms: StudyTerms

    @property
    def plan(self) -> Plan:
        """What silos and coordinator make of the terms."""
        return make_plan(self.terms)

    def data_sets(self) -> tuple[Curves, Curves]:
        return replaced(self.base, self.first), replaced(self.base, self.second)

    def silos(self, curves: Curves, ledger: Ledger) -> list[Silo]:
        """The audited silo with these curves, and the others; each has its ledger."""
        others = [
            make_silo(data, name=f"{OTHER} {k}", ledger=Ledger.in_memory(LARGE, DELTA))
            for k, data in enumerate(self.others)
        ]
        return [make_silo(curves, ledger=ledger), *others]


def worst_neighbours(case: Case, rng: np.random.Generator, tries: int) -> tuple[Neighbours, float]:
    """The replacement that moves a whole transcript most (its share of the claimed mu), among random ones."""
    base = ordinary_curves(case.n, case.columns, rng)
    others = tuple(ordinary_curves(case.n, case.columns, rng) for _ in range(case.silos - 1))
    silos = [make_silo(base), *(make_silo(data, name=f"{OTHER} {k}") for k, data in enumerate(others))]
    terms = case.terms(*silos)
    plan, recorder = make_plan(terms), Recorder(silos)
    run_study(terms, recorder, "dry run")
    best: tuple[float, Neighbours] | None = None
    for _ in range(tries):
        first = random_subject(case.columns, rng)
        second = Subject(first.x, -first.y, first.design) if rng.random() < 0.5 else random_subject(case.columns, rng)
        pair = Neighbours(case, base, first, second, others, terms)
        examiners = [Examiner(data, plan, name=NAME) for data in pair.data_sets()]
        steps = [_step(examiners, plan, query) for query, _ in recorder.rounds]
        moved = float(np.sqrt(sum(float(step @ step) for step, _, _ in steps)))
        best = (moved, pair) if best is None or moved > best[0] else best
    assert best is not None
    return best[1], best[0] / float(np.sqrt(mu_squared(plan.events(NAME))))


def audit_study(case: Case, rng: np.random.Generator, *, runs: int, tries: int) -> Result:
    """Run a study `runs` times on each data set, and test the transcripts, the ledger and the coordinator."""
    notes = Collector(case.name)
    pair, attained = worst_neighbours(case, rng, tries)
    claimed = float(np.sqrt(mu_squared(pair.plan.events(NAME))))
    notes.expect(
        attained <= 1 + TOLERANCE, "sensitivity", f"one curve moves the transcript {attained:.6g} times as far"
    )
    scores, noises = [], []
    for side, curves in enumerate(pair.data_sets()):
        side_scores, side_noises = _many_runs(pair, curves, side, runs)
        scores.append(side_scores)
        noises.append(side_noises)
    _check_noise([*noises[0], *noises[1]], notes)
    _check_books(pair, notes)
    _check_post_processing(pair, notes)
    test = separation(*map(np.array, scores))
    notes.expect(
        not test.violates(claimed),
        "claimed curve",
        f"mu is at least {test.mu_at_least(LEVEL):.3f}, claimed {claimed:.3f}",
    )
    return Result(case.name, gaussian_epsilon(claimed, DELTA), DELTA, claimed, attained, test, tuple(notes.found))


def _step(examiners: list[Examiner], plan: Plan, query: Query) -> tuple[Floats, Floats, Floats]:
    """By how much a round's whitened sum differs between the data sets, its middle, and the sd that is paid for."""
    (one, scale), (other, _) = (bounded(examiner, query) for examiner in examiners)
    mu = plan.event(NAME, query.round).mu
    sd = scale / mu
    return (other - one) / sd, (other + one) / 2 / sd, sd


def _many_runs(pair: Neighbours, curves: Curves, side: int, runs: int) -> tuple[list[float], list[list[Floats]]]:
    """Log likelihood ratios of transcripts, and the whitened noise of every round of every run."""
    scores, noises = [], []
    for start in range(0, runs, _PER_LEDGER):
        ledger = Ledger.in_memory(LARGE, DELTA)
        silos = pair.silos(curves, ledger)
        for number in range(start, min(start + _PER_LEDGER, runs)):
            run, recorder = f"run {number}", Recorder(silos)
            run_study(pair.terms, recorder, run)
            examiners = [Examiner(data, pair.plan, name=NAME) for data in pair.data_sets()]
            score, noise = 0.0, []
            for query, answers in recorder.rounds:
                release = answers[NAME]
                step, middle, sd = _step(examiners, pair.plan, query)
                size = len(pair.plan.rounds[query.round].batch(pair.case.n))
                whitened = release.values * size / sd
                score += float(step @ (whitened - middle))
                noise.append(whitened - middle - (side - 0.5) * step)
            scores.append(score)
            noises.append(noise)
    return scores, noises


def _check_noise(noises: list[list[Floats]], notes: Collector) -> None:
    """Each round's noise has its size, and no round's noise tells about another round's."""
    rounds = [np.array([run[index] for run in noises]) for index in range(len(noises[0]))]
    for index, noise in enumerate(rounds):
        for seen in wrong_size(noise):
            notes.expect(False, "size of the noise", f"round {index}: {seen}")
    for index in range(1, len(rounds)):
        width = min(rounds[index].shape[1], rounds[index - 1].shape[1])
        one, other = rounds[index - 1][:, :width].ravel(), rounds[index][:, :width].ravel()
        notes.expect(not dependent(one, other), "fresh noise", f"rounds {index - 1} and {index} share noise")


def _check_books(pair: Neighbours, notes: Collector) -> None:
    """One study on a ledger file, opened anew for every silo: each round is paid for, at its price, and stays paid."""
    events = pair.plan.events(NAME)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit.ledger"
        ledger = Ledger.create(path, EPSILON, DELTA)
        silos = pair.silos(pair.data_sets()[0], ledger)
        recorder = Recorder(silos)
        run_study(pair.terms, recorder, "books")
        _check_path(path, notes)
        _check_answers(pair, recorder, notes)
        reopened = Ledger.open(path)
        entries = reopened.log()
        owed = [mu_squared(events[:count]) if count else 0.0 for count in range(len(events) + 1)]
        notes.expect(
            bool(np.allclose(recorder.spent, owed, rtol=1e-9, atol=0)),
            "ledger", f"after its rounds it should show {owed[-1]:.6g}, it shows {recorder.spent[-1]:.6g}",
        )  # fmt: skip
        notes.expect(
            [(entry.round, entry.mu) for entry in entries] == [(t, event.mu) for t, event in enumerate(events)],
            "ledger", "its entries are not the plan's events",
        )  # fmt: skip
        notes.expect(
            abs(reopened.spent().mu_squared - owed[-1]) <= 1e-9 * owed[-1],
            "ledger",
            "a reopened ledger shows another sum",
        )
    notes.expect(owed[-1] <= mu_for(EPSILON, DELTA) ** 2 * (1 + 1e-12), "price", "the plan costs more than the claim")
    second_opinion = price_by_pld(events, DELTA)
    notes.expect(
        second_opinion <= EPSILON * (1 + _PLD_ERROR),
        "price",
        f"numerical composition gives epsilon {second_opinion:.3f}",
    )


def _check_path(path: Path, notes: Collector) -> None:
    mode = path.stat().st_mode & 0o777
    notes.expect(mode == 0o600, "file", f"the ledger's permissions are {mode:o}, not 600")


def _check_answers(pair: Neighbours, recorder: Recorder, notes: Collector) -> None:
    """The noise that was added fits the price that was paid; nothing is off the grid or marked as not private."""
    off = 0
    for query, answers in recorder.rounds:
        release, size = answers[NAME], len(pair.plan.rounds[query.round].batch(pair.case.n))
        examiner = Examiner(pair.data_sets()[0], pair.plan, name=NAME)
        _, scale = bounded(examiner, query)
        mu = float((scale / (release.noise_sd * size)).max())
        paid = [entry.mu for entry in recorder.ledger.log() if entry.round == query.round]
        notes.expect(
            bool(paid) and mu <= paid[0] * (1 + TOLERANCE), "noise against price",
            f"round {query.round}: noise fits mu = {mu:.4g}, paid was {paid[0] if paid else 0:.4g}",
        )  # fmt: skip
        notes.expect(release.private, "seed", f"round {query.round} is marked as not private")
        off += int((~grid_points(release, size)[1]).sum())
    notes.expect(off == 0, "last bits", f"{off} released numbers are not on the noise grid")


def _check_post_processing(pair: Neighbours, notes: Collector) -> None:
    """Given the same answers, the coordinator must ask and conclude the same, whatever data the silos hold."""
    first, second = pair.data_sets()
    recorder = Recorder(pair.silos(first, Ledger.in_memory(LARGE, DELTA)))
    outcome = run_study(pair.terms, recorder, "played")
    pair.silos(second, Ledger.in_memory(LARGE, DELTA))  # nothing of these may matter
    playback = Playback(recorder.rounds)
    again = run_study(pair.terms, playback, "played")
    same = playback.same and np.array_equal(outcome.coefficients, again.coefficients)
    notes.expect(same, "post-processing", "the coordinator's result depends on more than the answers")
