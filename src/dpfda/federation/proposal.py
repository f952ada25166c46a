"""Terms as they travel: a document that the coordinator has signed. Its content is one canonical `StudyTerms`."""

from __future__ import annotations

import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpfda.federation.signing import TERMS, encode_canonically, open_document, sign_document
from dpfda.protocol.terms import StudyTerms


def sign_terms(terms: StudyTerms, key: Ed25519PrivateKey) -> bytes:
    """The coordinator proposes terms."""
    return sign_document(TERMS, json.loads(terms.encode()), key)


def open_terms(data: bytes, coordinator: Ed25519PublicKey) -> StudyTerms:
    """The terms of a proposal, if the coordinator signed them and every value lies in its range."""
    return StudyTerms.decode(encode_canonically(open_document(TERMS, data, coordinator)))
