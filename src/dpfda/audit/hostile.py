"""A generator of hostile terms and messages, for tests and for `dpfda audit`.

It mutates every field: as bytes (other types, numbers beyond every range, NaN, nesting, keys that are missing, unknown or
written twice, other spellings of the same value) and as objects (what Python lets one put into a frozen dataclass). What is
accepted must cost each silo at most what it promised. The fields and their ranges are read from the terms' own
declaration: a new field is attacked as soon as it exists, and one without a range is an error.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpfda.errors import InvalidInput, ProtocolError
from dpfda.protocol import ranges
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import CovariateTerms, OutcomeTerms, SiloTerms, StudyTerms, canonical_json

NAME, CURVES = "audited", 24
EPSILON, DELTA, POINTS = 4.0, 1e-5, 3.0
REFUSALS = (ProtocolError, InvalidInput)
Path = tuple[str | int, ...]

_NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 0.0, -0.0, 0.5, -0.5, 1.0, 1.5, 3.0, 1e-6, 1e-9, 1e-30, 1e-100, 5e-324, 1e30, 1e100, 1e308, -1e308,
    2**31, 2**53 + 1, 2**63, 2**64, 10**40, 99_999, 65_536,
)  # fmt: skip
_TEXTS: tuple[Any, ...] = (
    "", " ", "a", "adaptive", "published", "quantiles", "nonprivate", "audit-level-histogram", "cosine", "none",
    "../../x", "/etc/passwd",
    "a\nb", "\x1b[2J", "[bold red]ok[/]", "x'; DROP TABLE debits;--", "=1+1", "+cmd", "@x", "-x", "a" * 64, "a" * 5000,
    "\ud800", "\u202e", "NaN", "1", "true", "null", "__class__", "{}", "%s%n", "\x00",
)  # fmt: skip
_OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"a": 1}, [0, 1], [1, 0], [0.0, 1.0], [0, 1, 2])
_LITERALS = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "1E5",
    "01",
    "1.0000000000000000001",
    '"\\u0061"',
    "[" * 900 + "]" * 900,
    "9" * 5000,
)
_ARRAYS = (0.0, -0.0, 1.0, -1.0, 1e6, -1e6, 1e7, 1e300, -1e300, 5e-324, 1e-300, np.nan, np.inf, -np.inf)

_RADII = (0.0, -0.0, -1.0, -1e6, 5e-324, 1e-300, 1e-9, 0.999e-9, 1e-8, 1e6, 1.001e6, 1e300, np.nan, np.inf, -np.inf)


def honest_terms() -> list[StudyTerms]:
    """What the mutations start from: every method, with and without each optional part."""
    mine, other = SiloTerms(NAME, CURVES, EPSILON, DELTA, POINTS), SiloTerms("other", 40, 1.0, 1e-6)
    number, category = CovariateTerms("g", (-1.0, 1.0)), CovariateTerms("sex", None, ("f", "m"))
    domain, y_bounds, constants = (0.0, 1.0), (-2.0, 2.0), PublishedConstants(C_T=1.0)
    second, third = OutcomeTerms("z", (0.0, 1.0), "binary"), OutcomeTerms("w", (0.1, 90.0), "positive", "log")
    given = PublishedConstants(T=5, weights=(1.0, 0.5), start=(0.5, 0.0, -0.1))
    return [
        StudyTerms("adaptive", domain, y_bounds, (mine,), n_basis=3, alpha=2.0),
        StudyTerms(
            "adaptive", domain, y_bounds, (mine, other), (number, category), basis="fourier", robust_sites=False
        ),
        StudyTerms(
            "adaptive",
            domain,
            y_bounds,
            (mine,),
            basis="cosine",
            assume_symmetric=True,
            outcome="binary",
            visit_times=(0.0, 0.25, 1.0),
        ),
        StudyTerms("adaptive", domain, y_bounds, (mine,), (number,), intercept=False, basis="fourier-extension"),
        StudyTerms(
            "published", domain, y_bounds, (mine,), (number,), n_basis=3, constants=constants, projection="cone"
        ),
        StudyTerms("published", domain, y_bounds, (mine, other), y_scale="none", constants=constants, basis="fourier"),
        StudyTerms("published", domain, y_bounds, (mine, other), n_basis=3, constants=given, variant="full-batch"),
        StudyTerms("adaptive", domain, (0.1, 90.0), (mine,), n_basis=3, transform="log"),
        StudyTerms("adaptive", domain, y_bounds, (mine,), (number,), n_basis=3, weight="visit", visit_cap=2),
        StudyTerms("published", domain, (0.0, 9.0), (mine,), n_basis=3, constants=constants, transform="log1p"),
        StudyTerms("quantiles", domain, y_bounds, (mine,), levels=(0.1, 0.5)),
        StudyTerms("adaptive", domain, y_bounds, (mine,), (number,), n_basis=3, further=(second, third)),
        StudyTerms("adaptive", domain, y_bounds, (mine, other), n_basis=3, further=(second,), own_visits=True),
    ]


def every_field() -> dict[str, ranges.Range]:
    """All fields of terms and of their parts, with the range of each."""
    kinds = (StudyTerms, SiloTerms, CovariateTerms, OutcomeTerms, PublishedConstants)
    return {f"{kind.__name__}.{name}": allowed for kind in kinds for name, allowed in ranges.ranges_of(kind).items()}


def hostile_bytes(rng: np.random.Generator) -> bytes:
    """Encoded terms with something wrong, or something extreme, somewhere."""
    return change_terms(_pick(rng, _ENCODED), rng)


def change_terms(encoded: bytes, rng: np.random.Generator) -> bytes:
    """These terms (JSON of any kind) with one or two changes; a fuzzer goes on from what it found with it."""
    fields = json.loads(encoded)
    for _ in range(1 + int(rng.random() < 0.2)):
        path = _pick(rng, list(_paths(fields)) or [()])
        if path:
            _pick(rng, _CHANGES)(fields, path, rng)
    choice = rng.random()
    if choice < 0.85:
        return _dump(fields)
    if choice < 0.9:
        return _replace_literal(fields, rng)
    return _damage(_dump(fields), rng)


def hostile_object(rng: np.random.Generator) -> StudyTerms:
    """Terms as an object with a forbidden value in one field, built or forced; the constructor may refuse."""
    terms: StudyTerms = copy.deepcopy(_pick(rng, _HONEST))
    parts: list[Any] = [terms, *terms.silos, *terms.covariates, *terms.further]
    parts += [terms.constants] if terms.constants else []
    part = _pick(rng, parts)
    name = _pick(rng, [field.name for field in dataclasses.fields(part)])
    value = _object_value(rng)
    if rng.random() < 0.5:
        changed = dataclasses.replace(part, **{name: value})
        return changed if isinstance(changed, StudyTerms) else dataclasses.replace(terms, silos=(changed,))
    object.__setattr__(part, name, value)
    return terms


def hostile_message(rng: np.random.Generator) -> tuple[type[Query] | type[Release], bytes]:
    """An encoded query or release with something wrong in it."""
    values = rng.choice(_ARRAYS, int(rng.integers(0, 5)))
    message: Query | Release = Query("run", int(rng.integers(0, 3)), {"iterate": values})
    if rng.random() < 0.3:
        message = Release("run", 0, NAME, values, np.abs(values), bool(rng.random() < 0.5))
    data = message.encode()
    if rng.random() < 0.4:
        return type(message), _damage(data, rng)
    length = int.from_bytes(data[6:10], "little")
    header, body = json.loads(data[10 : 10 + length]), data[10 + length :]
    path = _pick(rng, list(_paths(header)))
    _pick(rng, _CHANGES)(header, path, rng)
    text = _dump(header)
    stated = len(text) if rng.random() < 0.8 else int(rng.integers(0, 2**32))
    return type(message), data[:6] + stated.to_bytes(4, "little") + text + body


def read_terms(data: bytes) -> StudyTerms | None:
    """The terms behind these bytes, or None if they are refused as they should be; any other error is a finding."""
    try:
        terms = StudyTerms.decode(data)
    except REFUSALS:
        return None
    assert terms.encode() == data, "two encodings of one study"
    return terms


def hostile_arrays(sizes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """The arrays of a query, of the right sizes and with extreme entries that a silo lets pass, but for radii and scales."""
    allowed = [value for value in _ARRAYS if abs(value) <= 1e6]
    arrays = {
        name: rng.choice(allowed, size) if rng.random() < 0.5 else rng.normal(size=size) for name, size in sizes.items()
    }
    for name in arrays.keys() & {"radius", "covariate_scale"}:
        wild = rng.random() < 0.3
        arrays[name] = rng.choice(_RADII, sizes[name]) if wild else 10.0 ** rng.uniform(-9, 6, sizes[name])
    return arrays


def _replace(fields: Any, path: Path, rng: np.random.Generator) -> None:
    _put(fields, path, copy.deepcopy(_pick(rng, _pick(rng, (_NUMBERS, _TEXTS, _OTHERS)))))


def _go_to_an_end(fields: Any, path: Path, rng: np.random.Generator) -> None:
    """The ends of the field's own range, and what is just beyond them."""
    allowed = range_at(path)
    if allowed is not None:
        _put(fields, path, _edge(allowed, rng))


def _remove(fields: Any, path: Path, rng: np.random.Generator) -> None:
    holder = _at(fields, path[:-1])
    if path:
        del holder[path[-1]]


def _add(fields: Any, path: Path, rng: np.random.Generator) -> None:
    node = _at(fields, path)
    if isinstance(node, dict):
        node[_pick(rng, ("bins", "radii", "shares", "plan", "weight", "radius", "rounds", "__class__", "Domain"))] = 1
    elif isinstance(node, list) and node:
        node.extend([copy.deepcopy(node[0])] * (1100 if rng.random() < 0.002 else int(rng.integers(1, 4))))


def _nudge(fields: Any, path: Path, rng: np.random.Generator) -> None:
    """Another value of the same type: most of these are allowed terms."""
    node = _at(fields, path)
    if isinstance(node, float):
        _put(fields, path, float(node * 10.0 ** float(rng.uniform(-3, 3))))
    elif isinstance(node, int) and not isinstance(node, bool):
        _put(fields, path, node + int(rng.integers(-3, 4)))
    elif isinstance(node, bool):
        _put(fields, path, not node)


_CHANGES: tuple[Callable[[Any, Path, np.random.Generator], None], ...] = (
    *(_replace,) * 7, *(_go_to_an_end,) * 5, _remove, *(_add,) * 2, *(_nudge,) * 5
)  # fmt: skip


def range_at(path: Path) -> ranges.Range | None:
    """The range of the field at a path into encoded terms."""
    allowed: ranges.Range | None = ranges.Part(StudyTerms)
    for step in path:
        while isinstance(allowed, ranges.Maybe):
            allowed = allowed.inner
        if isinstance(allowed, ranges.Part) and isinstance(step, str):
            allowed = ranges.ranges_of(allowed.kind).get(step)
        elif isinstance(allowed, ranges.Several) and isinstance(step, int):
            allowed = allowed.inner
        elif isinstance(allowed, ranges.Ends) and isinstance(step, int):
            allowed = ranges.Real(-allowed.most, allowed.most)
        else:
            return None
    return allowed


def _edge(allowed: ranges.Range, rng: np.random.Generator) -> Any:  # noqa: PLR0911
    if isinstance(allowed, ranges.Maybe):
        return None if rng.random() < 0.3 else _edge(allowed.inner, rng)
    if isinstance(allowed, ranges.Whole):
        return _pick(rng, (allowed.low - 1, allowed.low, allowed.low + 1, allowed.high, allowed.high + 1))
    if isinstance(allowed, ranges.Real):
        beyond = float(np.nextafter(allowed.low, -np.inf)), float(np.nextafter(allowed.high, np.inf))
        return float(_pick(rng, (allowed.low, allowed.high, *beyond, (allowed.low + allowed.high) / 2)))
    if isinstance(allowed, ranges.Word):
        return _pick(rng, allowed.words)
    if isinstance(allowed, ranges.Fixed):
        return allowed.number + int(rng.integers(-1, 2))
    if isinstance(allowed, ranges.Ends):
        size = float(10.0 ** rng.uniform(-31, 31))
        return _pick(rng, ([-size, size], [0.0, size], [size, size], [size, 0.0], [size, size * (1 + 1e-9)]))
    if isinstance(allowed, ranges.Text):
        return "a" * int(_pick(rng, (0, 1, allowed.most, allowed.most + 1)))
    if isinstance(allowed, ranges.Several):
        many = rng.random() < 0.05
        count = _pick(rng, (allowed.most, allowed.most + 1)) if many else int(rng.integers(0, 4))
        return [_edge(allowed.inner, rng) for _ in range(count)]
    return _pick(rng, _OTHERS)


def _object_value(rng: np.random.Generator) -> Any:
    odd = (
        float("nan"), float("inf"), 10**400, Fraction(1, 3), Decimal("0.5"), np.float64(0.5), np.int64(7), np.float32(0.1),
        np.array([0.0, 1.0]), b"bytes", object(), (1,), ((0.0, 1.0),), 1j, range(3), StudyTerms, lambda: 0,
    )  # fmt: skip
    return _pick(rng, _pick(rng, (_NUMBERS, _TEXTS, _OTHERS, odd)))


def _replace_literal(fields: Any, rng: np.random.Generator) -> bytes:
    """One value spelt in a way that no encoder writes, or one key written twice."""
    text = _dump(fields).decode(errors="surrogatepass")
    if rng.random() < 0.5:
        place = text.find(":", int(rng.integers(0, max(1, len(text)))))
        end = min((found for found in (text.find(",", place), text.find("}", place)) if found > 0), default=len(text))
        return (text[: place + 1] + str(_pick(rng, _LITERALS)) + text[end:]).encode(errors="replace")
    key = _pick(rng, ("method", "silos", "n_basis", "schema", "name"))
    return (text[:1] + f'"{key}":1,' + text[1:]).encode(errors="replace")


def _damage(data: bytes, rng: np.random.Generator) -> bytes:
    """Bytes flipped, cut, doubled, spaced."""
    place, choice = int(rng.integers(0, max(1, len(data)))), rng.random()
    if choice < 0.4:
        return data[:place] + bytes([int(rng.integers(0, 256))]) + data[place + 1 :]
    if choice < 0.6:
        return data[:place]
    if choice < 0.8:
        return data[:place] + b" " + data[place:]
    return data + data[:place]


def _paths(node: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in a JSON value but the root."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from _paths(child, (*path, key))


def _at(fields: Any, path: Path) -> Any:
    for step in path:
        fields = fields[step]
    return fields


def _put(fields: Any, path: Path, value: Any) -> None:
    _at(fields, path[:-1])[path[-1]] = value


def _dump(fields: Any) -> bytes:
    try:
        return canonical_json(fields)
    except ValueError:  # not finite
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def _pick(rng: np.random.Generator, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


_HONEST = honest_terms()
_ENCODED = [terms.encode() for terms in _HONEST]
