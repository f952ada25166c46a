"""How answers of another language are held against golden ones."""

from __future__ import annotations

from typing import Any


def list_differences(found: Any, expected: Any, scale: float, place: str = "") -> list[str]:
    """Where two answers differ by more than 1e-10 of the size of the answers."""
    if isinstance(expected, dict):
        return [
            line for key in expected for line in list_differences(found[key], expected[key], scale, f"{place}.{key}")
        ]
    if isinstance(expected, list):
        if len(found) != len(expected):
            return [f"{place}: {len(found)} entries in place of {len(expected)}"]
        pairs = enumerate(zip(found, expected, strict=True))
        return [line for k, (one, other) in pairs for line in list_differences(one, other, scale, f"{place}[{k}]")]
    return [] if abs(found - expected) <= 1e-10 * max(scale, abs(expected)) else [f"{place}: {found} and {expected}"]
