"""A counter-proposal: a site would accept the same study at other numbers. Epsilon, delta and dates, and nothing else.

The document has no field for a domain, bounds, levels or anything else that is public by definition of the study: if a site
could move those after a look at its data, the move itself would show something of the data.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpfda import _validate
from dpfda.errors import InvalidInput, ProtocolError
from dpfda.federation.approvals import Window
from dpfda.federation.signing import COUNTER, open_document, parse_canonically, sign_document
from dpfda.federation.study import read_study
from dpfda.protocol.terms import SiloTerms, StudyTerms

_FIELDS = {"terms", "site", "epsilon", "delta", "begins", "ends", "at"}


@dataclass(frozen=True)
class Counter:
    """What a site would accept instead."""

    site: str
    epsilon: float
    delta: float
    window: Window


def write_counter(terms: StudyTerms, counter: Counter, key: Ed25519PrivateKey) -> bytes:
    """A signed counter-proposal of the site."""
    stated = terms.silo(counter.site)
    epsilon, delta = _validate.privacy_pair(counter.epsilon, counter.delta)
    if (epsilon, delta) == (stated.epsilon, stated.delta) and counter.window == Window():
        raise InvalidInput(
            "The counter-proposal equals the proposal; give a different --epsilon, --delta, --from or --until."
        )
    body = {"terms": terms.digest(), "site": counter.site, "epsilon": epsilon, "delta": delta,
            "begins": counter.window.begins, "ends": counter.window.ends, "at": int(time.time())}  # fmt: skip
    return sign_document(COUNTER, body, key)


def read_counter(data: bytes, terms: StudyTerms, site: str, public: Ed25519PublicKey) -> Counter:
    """The counter-proposal of this site to these terms."""
    body = open_document(COUNTER, data, public)
    if set(body) != _FIELDS or (body["terms"], body["site"]) != (terms.digest(), site):
        raise ProtocolError("The counter-proposal is of another site, or to other terms.")
    days = [body["begins"], body["ends"]]
    if not all(day is None or (isinstance(day, int) and not isinstance(day, bool)) for day in days):
        raise ProtocolError("The dates of the counter-proposal are malformed.")
    epsilon, delta = _validate.privacy_pair(body["epsilon"], body["delta"])
    return Counter(site, epsilon, delta, Window(*days))


def take_counter(data: bytes, terms: StudyTerms, keys: Mapping[str, Ed25519PublicKey]) -> Counter:
    """A counter-proposal as it came from somewhere, if one of these sites has signed it."""
    try:
        site = str(parse_canonically(data)["body"]["site"])
        return read_counter(data, terms, site, keys[site])
    except (ProtocolError, KeyError, TypeError) as error:
        why = str(error) if isinstance(error, ProtocolError) else "it is not of an enrolled site"
        raise InvalidInput(f"The counter-proposal is rejected: {why.rstrip('.')}.") from None


def apply_counter(terms: StudyTerms, counter: Counter) -> StudyTerms:
    """The terms with this site's numbers, and every other value as it was."""

    def change(silo: SiloTerms) -> SiloTerms:
        if silo.name != counter.site:
            return silo
        return dataclasses.replace(silo, epsilon=counter.epsilon, delta=counter.delta)

    return dataclasses.replace(terms, silos=tuple(map(change, terms.silos)))


def rewrite_study(path: Path, target: Path, counter: Counter) -> StudyTerms:
    """Write a new `study.toml` with the counter-proposal's numbers; comments and everything else stay."""
    wanted = apply_counter(read_study(path).terms, counter)
    if target.exists():
        raise InvalidInput(f"{target} exists; choose another --output.")
    blocks = re.split(r"(?m)^(?=\s*\[)", path.read_text())
    target.write_text("".join(_change_block(block, counter) for block in blocks))
    if read_study(target).terms != wanted:
        target.unlink()
        raise InvalidInput(
            f"{path.name} could not be changed automatically; write epsilon and delta of {counter.site} by hand."
        )
    return wanted


def _change_block(block: str, counter: Counter) -> str:
    """A table of the file, with new numbers if it is that of the site."""
    named = re.search(rf'(?m)^\s*name\s*=\s*["\']{re.escape(counter.site)}["\']', block)
    if not block.lstrip().startswith("[[sites]]") or named is None:
        return block
    for name, value in (("epsilon", counter.epsilon), ("delta", counter.delta)):
        line = rf"(?m)^(\s*{name}\s*=\s*)[^#\n]*?([ \t]*(?:#.*)?)$"
        block = re.sub(line, rf"\g<1>{value!r}\g<2>", block, count=1)
    return block
