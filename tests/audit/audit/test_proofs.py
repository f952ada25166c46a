"""Code that a proof rests on does not change without its note being looked at."""

from __future__ import annotations

import pytest

from dpfda.audit import proofs


def test_every_proof_was_looked_at_since_its_code_changed() -> None:
    assert proofs.problems() == []


def test_a_changed_module_is_noticed(tmp_path) -> None:
    record = tmp_path / "reviewed.toml"
    for note in {note for notes in proofs.NOTES.values() for note in notes}:
        (tmp_path / note).touch()
    proofs.accept(record)
    assert proofs.problems(record) == []
    record.write_text(record.read_text().replace(proofs.fingerprint("silo/silo.py"), "0" * 64))
    (problem,) = proofs.problems(record)
    assert "silo/silo.py" in problem
    assert "transcript.md" in problem


def test_a_missing_record_or_note_is_noticed(tmp_path) -> None:
    assert len(proofs.problems(tmp_path / "nothing.toml")) > len(proofs.guarded())


@pytest.mark.parametrize(
    "module", ["silo/silo.py", "silo/release_statistics.py", "privacy/gaussian.py", "privacy/ledger/ledger.py"]
)
def test_the_modules_that_matter_are_guarded(module) -> None:
    assert module in proofs.guarded()
