"""What a forecast says, in words: one function says where the error comes from and what helps, so they cannot disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MUCH, LITTLE = 0.7, 0.95  # squared error times this: below, doubling helps much; above, hardly
SOURCES = {"privacy": "privacy noise", "sampling": "sampling (few subjects, few visits)", "bias": "smoothing"}
TERMS = {
    "non-private sparse": "sampling error that more visits and more subjects lower",
    "private sparse": "privacy noise that more subjects, a larger budget and more visits lower",
    "non-private dense": "sampling error that only more subjects lower",
    "private dense": "privacy noise that only more subjects or a larger budget lower",
}


# Measured squared error over forecast, least and most, on the grid of benchmarks/planner.py. The one place of these figures:
# a test compares them with the table of docs/planner.md.
MEASURED = {"symmetric": (0.6, 1.4), "binary": (1.0, 1.5), "skewed": (1.1, 1.3), "local": (1.5, 2.1)}
_WHAT = {"symmetric": " for up to 10 sites", "binary": " of binary outcomes", "skewed": " of skewed outcomes"}


def tell_trust(law: str) -> str:
    """How good forecasts were for outcomes of a law, or for "local" privacy (of symmetric outcomes), in a sentence."""
    least, most = MEASURED[law]
    if law == "local":
        return (
            f"The row for local privacy: measured squared errors of symmetric outcomes were {least:.1f} to {most:.1f} times "
            "the forecast."
        )
    return (
        f"A forecast for the default method, not a bound: measured squared errors{_WHAT[law]} were {least:.1f} to "
        f"{most:.1f} times the forecast when the guesses were right."
    )


def explain(parts: Mapping[str, float], doubling: Sequence[tuple[str, float]], regime: str | None = None) -> list[str]:
    """Sentences about the parts of the squared error, about what doubling brings, and about the regime of the theory.

    `parts` are privacy, sampling and bias; `doubling` holds what is doubled and the factor on the squared error.
    """
    total = sum(parts.values())
    ordered = sorted(parts, key=lambda name: -parts[name])
    shares = ", ".join(f"{parts[name] / total:.0%} {SOURCES[name]}" for name in ordered)
    found = [f"Of the squared error: {shares}.", _word_doubling(doubling)]
    if regime is not None:
        found.append(_word_regime(regime, parts["privacy"] / total))
    return found


def _word_doubling(doubling: Sequence[tuple[str, float]]) -> str:
    ordered = sorted(doubling, key=lambda pair: pair[1])
    groups = (
        ("much", [pair for pair in ordered if pair[1] < MUCH]),
        ("some", [pair for pair in ordered if MUCH <= pair[1] < LITTLE]),
        ("next to nothing", [pair for pair in ordered if pair[1] >= LITTLE]),
    )
    said = [
        f"{words} from " + ", ".join(f"{name} (times {factor:.2f})" for name, factor in members)
        for words, members in groups
        if members
    ]
    return f"What the squared error would gain: {'; '.join(said)}."


def _word_regime(regime: str, privacy: float) -> str:
    """The limit of large studies, next to what this study's own figures say."""
    private = regime.startswith("private")
    limit = f"In the limit of large studies the {regime} term of the rate leads: {TERMS[regime]}."
    if private == (privacy >= 0.5):
        return f"{limit} At your size it is the same: privacy is {privacy:.0%} of the squared error."
    return (
        f"{limit} At your size it is not, since rates leave out constants: privacy is {privacy:.0%} of the squared "
        "error. Trust the forecast."
    )
