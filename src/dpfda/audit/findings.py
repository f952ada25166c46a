"""What an audit reports: results beside their claims, and violations in words."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpfda.audit.hypothesis_tests import Separation


@dataclass(frozen=True)
class Violation:
    """A check that failed, where, and what was seen."""

    check: str
    where: str
    seen: str

    def __str__(self) -> str:
        return f"{self.check} ({self.where}): {self.seen}"


@dataclass(frozen=True)
class Result:
    """One release type: what is claimed and what the attacks attained."""

    name: str
    epsilon: float
    delta: float
    mu: float
    attained: float
    test: Separation
    violations: tuple[Violation, ...] = ()

    @property
    def epsilon_found(self) -> float:
        """The empirical lower bound on epsilon, at the report's confidence."""
        return self.test.epsilon_at_least(self.delta)


@dataclass
class Collector:
    """Gathers the violations of one place."""

    where: str
    found: list[Violation] = field(default_factory=list)

    def expect(self, holds: bool, check: str, seen: str) -> None:
        """Note a violation unless the condition holds."""
        if not holds:
            self.found.append(Violation(check, self.where, seen))
