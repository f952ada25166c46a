"""The site's own signature over the small files that decide what it does: credentials and policy.

Names, owners and modes are checked by `folder`; this tells a file that dpfda wrote on its owner's word from one that was
put there since. Whoever holds the site's signing key can write a seal, so it protects against files that arrive, not
against whoever controls the machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

from cryptography.exceptions import InvalidSignature

from dpfda.errors import InvalidInput, ProtocolError
from dpfda.federation.files import write_atomically
from dpfda.federation.folder import SiteFolder
from dpfda.federation.keys import common_name, read_certificate, read_rsa_key, read_signing_key
from dpfda.federation.signing import SEAL, open_document, sign_document

SEALED = ("ca.crt", "site.crt", "address.json", "policy.json")
_NONE: Mapping[str, bytes] = MappingProxyType({})


def write_seal(folder: SiteFolder, coming: Mapping[str, bytes] = _NONE) -> None:
    """Seal the files as they are now; called after dpfda has changed one of them.

    Several files that change together are sealed before they are written, as `coming`: whatever ends the process in
    between, the seal says which bytes its owner decided on, and the same command given again goes on with them.
    """
    digests = _digest_files(folder) | _digest_coming(coming)
    write_atomically(folder.seal, sign_document(SEAL, digests, read_signing_key(folder.sign_key)))


def check_seal(folder: SiteFolder, *, apart_from: str = "", coming: Mapping[str, bytes] = _NONE) -> None:
    """Refuse to go on unless credentials and policy are those that dpfda wrote here, and the keys belong to them.

    `apart_from` names a file that its owner is about to replace; `coming` holds files that are about to be written: where
    the seal is already theirs, an earlier call was cut short.
    """
    try:
        sealed = open_document(SEAL, folder.seal.read_bytes(), read_signing_key(folder.sign_key).public_key())
    except FileNotFoundError:
        raise InvalidInput(f"{folder.seal} is missing: take the coordinator's credentials first.") from None
    except ProtocolError:
        raise InvalidInput(
            "seal.json or sign.key was changed by something other than dpfda; do not run this site."
        ) from None
    now = _digest_files(folder)
    then = now | _digest_coming(coming)
    allowed = {name: (now.get(name), then.get(name)) for name in SEALED if name != apart_from}
    changed = [name for name, digests in allowed.items() if sealed.get(name) not in digests]
    if changed or set(sealed) - set(SEALED):
        raise InvalidInput(
            f"{', '.join(changed) or 'seal.json'} was changed by something other than dpfda since this site's owner last "
            "decided; find out who did it, then repeat the command that wrote it."
        )
    _check_credentials(folder)


def read_site_name(folder: SiteFolder) -> str:
    """Whose folder it is, by its certificate."""
    try:
        return common_name(read_certificate(folder.certificate.read_bytes()))
    except FileNotFoundError:
        raise InvalidInput(
            f"{folder.root} has no certificate yet; send the coordinator its request, then run dpfda site take."
        ) from None


def _check_credentials(folder: SiteFolder) -> None:
    certificate, authority = (read_certificate(path.read_bytes()) for path in (folder.certificate, folder.authority))
    if certificate.public_key() != read_rsa_key(folder.site_key).public_key():
        raise InvalidInput("site.key is not the key of site.crt; do not run this site.")
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        raise InvalidInput("site.crt was not signed by ca.crt; do not run this site.") from None


def _digest_coming(coming: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in coming.items()}


def _digest_files(folder: SiteFolder) -> dict[str, str]:
    found = {}
    for name in SEALED:
        path = folder.root / name
        if path.is_file() and not path.is_symlink():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
