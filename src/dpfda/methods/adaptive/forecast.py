from __future__ import annotations
from collections.abc import Callable
from dataclasses import dataclass
from dpfda._typing import Floats
from dpfda.protocol.plan import Plan
Function = Callable[[Floats], Floats]
@dataclass(frozen=True)
class Guesses:
    spread: float
    noise_sd: float
    signal: float
    functions: tuple[Function, ...] | None
    density: Function | None
    design_moments: Floats
def forecast(plan: Plan, m: float, guesses: Guesses) -> tuple[float, float, float, float]:
    return 0.01, 0.01, 0.01, 1.0
