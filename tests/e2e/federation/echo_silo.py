"""A silo that opens signed queries, and answers with the site's signature; payloads choose what it does."""

import sys
import time
from pathlib import Path

from dpfda.federation.flare.launch import end_with_parent
from dpfda.federation.folder import Address, SiteFolder
from dpfda.federation.keys import common_name, read_certificate, read_public_text, read_signing_key
from dpfda.federation.signed import SignedHandler
from dpfda.federation.silo_service import SiloService

folder = SiteFolder(Path(sys.argv[1]))
coordinator = read_public_text(Address.read(folder.address_path).coordinator_key)
site = common_name(read_certificate(folder.certificate.read_bytes()))
key = read_signing_key(folder.sign_key)


def answer(subject, payload: bytes) -> bytes:
    if payload.startswith(b"sleep "):
        time.sleep(float(payload[6:]))
    if payload == f"fail {site}".encode():
        raise RuntimeError("SECRET-CAUSE: the disk is full")
    return payload


handler = SignedHandler(site, coordinator, key, answer)
end_with_parent()
SiloService(handler, folder.run / "silo.sock", lambda why: print("silo refused:", why, flush=True)).run()
