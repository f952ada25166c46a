"""Every reading of Algorithm 1, transcribed in plain loops, against the engine that runs them side by side."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from dpfda.curves.simulated import simulate_mean
from dpfda.privacy.accounting import gaussian_delta
from dpfda.reproduce import catalogue
from dpfda.reproduce.cells import Cell, Method, make_plan
from dpfda.reproduce.published_runs import Moments, PublishedRuns, curve_moments
from dpfda.reproduce.readings import READINGS
from dpfda.silo.prepared import prepare

N, M, R_SIZE, RHO, ALPHA, DELTA, EPS = 90, 4, 3, 0.1, 3.0, 1e-3, 2.0


def phi(ell, u):
    if ell == 1:
        return 1.0
    return math.sqrt(2) * (math.cos if ell % 2 == 0 else math.sin)(2 * (ell // 2) * math.pi * u)


def noise_sizes(name, radii, T, mu):
    """sigma_l of w_t as each reading has it."""
    b, L = N // T, math.log(2 / DELTA)
    below = {"A": b, "B": b, "C": N, "C-eta-0.1": N, "F": N, "literal": b}
    if name == "full-batch":  # T rounds of mu/sqrt(T) each
        return [math.sqrt(4 * R * sum(radii) * T / (N * mu) ** 2) for R in radii]
    return [math.sqrt(16 * L * R * sum(radii)) / (below[name] * EPS) for R in radii]


def transcribe(name, curves, normals, T, mu):
    eta = 0.1 if name == "C-eta-0.1" else 0.05
    log = math.log(N / eta)
    inside = log if name == "B" else log**2
    radii = [0.75 * (math.sqrt(inside / M) + ell**-ALPHA) for ell in range(1, R_SIZE + 1)]
    sigma = noise_sizes(name, radii, T, mu)
    every = name in ("F", "full-batch")
    outside = name in ("C", "C-eta-0.1", "F", "literal")
    b = N if every else N // T
    a = [0.0] * R_SIZE
    for t in range(T):
        members = range(N) if every else range(t * b, (t + 1) * b)
        total = [0.0] * R_SIZE
        for i in members:
            xs = curves.x[curves.offsets[i] : curves.offsets[i + 1]]
            ys = curves.y[curves.offsets[i] : curves.offsets[i + 1]]
            g = [0.0] * R_SIZE
            for x, y in zip(xs, ys, strict=True):
                fit = sum(phi(k + 1, x) * a[k] for k in range(R_SIZE))
                for k in range(R_SIZE):
                    g[k] += phi(k + 1, x) * (fit - y) / len(xs)
            for k in range(R_SIZE):
                total[k] += min(max(g[k], -radii[k]), radii[k])
        w = [sigma[k] * normals[t, 0, k] for k in range(R_SIZE)]
        step = [RHO * total[k] / b + (w[k] if outside else RHO * w[k]) for k in range(R_SIZE)]
        a = [a[k] - step[k] for k in range(R_SIZE)]
    return a


@pytest.mark.parametrize("name", READINGS)
def test_the_engine_is_the_transcription(name):
    reading = READINGS[name]
    method = Method("published", (EPS,), 1, n_basis=R_SIZE, reading=name)
    constants = dataclasses.replace(method.constants, C_alpha=1e9, eta=reading.eta or method.constants.eta)
    method = dataclasses.replace(method, constants=constants)
    plan = make_plan(Cell(N, M, delta=DELTA), method, EPS)
    runs = PublishedRuns.of([plan], [reading], [constants.eta])
    curves = simulate_mean(N, M, rng=3)
    moments = Moments.stack([curve_moments(prepare(curves, plan.basis, plan.scaling), plan.basis)])
    normals = runs.draw(np.random.default_rng(8))
    found = runs.run([moments], normals[None])[0, 0]
    expected = transcribe(name, curves, normals[..., 0], len(plan.rounds), plan.mu("silo-1"))
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", READINGS)
def test_the_exact_price_of_a_reading_is_that_of_its_whitened_change(name):
    """mu^2 = rounds that see a curve, times sum_l (change of entry l / its noise)^2, from the transcription."""
    method = Method("published", (EPS,), 1, n_basis=R_SIZE, reading=name)
    plan = make_plan(Cell(N, M, delta=DELTA), method, EPS)
    T = len(plan.rounds)
    radii = [1.0, 0.7, 0.5]
    sigma = noise_sizes(name, radii, T, plan.mu("silo-1"))
    every, outside = name in ("F", "full-batch"), name in ("C", "C-eta-0.1", "F", "literal")
    change = [2 * R / (N if every else N // T) * (RHO if outside else 1.0) for R in radii]
    mu = math.sqrt(sum((c / s) ** 2 for c, s in zip(change, sigma, strict=True)) * (T if every else 1))
    assert gaussian_delta(mu, READINGS[name].exact_epsilon(plan, "silo-1")) == pytest.approx(DELTA, rel=1e-6)


def test_only_c_costs_more_than_it_claims():
    cell = Cell(1000, 10)
    for name, reading in READINGS.items():
        plan = make_plan(cell, Method("published", (8.0,), 1, n_basis=3, reading=name), 8.0)
        assert (reading.exact_epsilon(plan, "silo-1") > 8.0 * (1 + 1e-9)) == name.startswith("C")


def test_readings_exist_for_experiments_only():
    package = Path(catalogue.__file__).parents[1]
    users = {path for path in package.rglob("*.py") if "reproduce.readings" in path.read_text()}
    assert users
    assert all(path.parent.name in ("reproduce", "claims", "figures") for path in users)


def test_an_experiment_can_be_read_otherwise():
    experiment = catalogue.load_experiment("dense", quick=True, reading="C-eta-0.1")
    assert experiment.label == "dense-C-eta-0.1"
    methods = {method for point in experiment.points for method in point.cell.methods}
    assert {method.name for method in methods} == {"published", "nonprivate"}
    own = {
        m.constants.eta
        for p in experiment.points
        if p.sweep == "dense"
        for m in p.cell.methods
        if m.name == "published"
    }
    assert own == {0.1}


def test_the_composite_has_every_reading_of_every_experiment():
    experiment = catalogue.load_experiment("readings")
    pairs = {(part.reading, part.name) for part in experiment.parts}
    names = {"mean-1", "mean-2", "dense", "heat", "visits", "sensitivity", "real-data"}
    assert pairs == {(reading, name) for reading in READINGS for name in names}
