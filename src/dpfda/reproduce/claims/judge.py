"""The claims of every experiment, each with its verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dpfda.reproduce.claims.claim import SHOWN, Claim
from dpfda.reproduce.claims.dense import dense_claims
from dpfda.reproduce.claims.readings import read_claim, reading_facts
from dpfda.reproduce.claims.real_data import real_data_claims
from dpfda.reproduce.claims.sample_size import heat_claims, mean_claims, visits_claims
from dpfda.reproduce.claims.silos_and_covariates import covariate_claims, silo_claims
from dpfda.reproduce.claims.tuning import tuning_claims
from dpfda.reproduce.results import Results


def readings_claims(results: Results) -> Iterable[Claim]:
    """Every claim of the paper's experiments under every reading, then what the readings are worth."""
    for part in results.parts:
        for claim in CLAIMS[part.experiment.name](part):
            if claim.verdict != SHOWN and claim.method == "published":
                yield read_claim(claim, part.experiment.reading)
    yield from reading_facts(results)


CLAIMS: dict[str, Callable[[Results], Iterable[Claim]]] = {
    "mean-1": mean_claims,
    "mean-2": mean_claims,
    "dense": dense_claims,
    "heat": heat_claims,
    "visits": visits_claims,
    "sensitivity": tuning_claims,
    "federated": silo_claims,
    "covariates": covariate_claims,
    "real-data": real_data_claims,
    "readings": readings_claims,
}


def judge_claims(results: Results) -> list[Claim]:
    """All claims about one experiment."""
    return list(CLAIMS[results.experiment.name](results))
