"""A promise in README, guarantee or federation names the test or proof that shows it, and that exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpfda.audit import claims
from dpfda.audit.claims import Entry, exists, find_problems, find_sentences, read_entries, write_page


def test_every_promise_is_shown_by_something_that_exists() -> None:
    assert find_problems(read_entries()) == []


def test_the_page_is_current() -> None:
    assert claims.PAGE.read_text() == write_page(read_entries()), "run python -m dpfda.audit.claims --write"


def test_no_entry_is_there_twice() -> None:
    entries = [(entry.page, entry.says) for entry in read_entries()]
    assert len(entries) == len(set(entries))


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    for page in claims.STRICT:
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / page).write_text("# A page\n\nIt is short.\n")
    return tmp_path


@pytest.mark.parametrize("sentence", ["It never leaks.", "* Nothing leaves.\n* A list.", "| a thief | is refused |"])
def test_a_new_promise_is_noticed(pages, sentence) -> None:
    (pages / "docs/guarantee.md").write_text(f"One sentence. {sentence}" if sentence[0] == "I" else sentence)
    assert len(find_problems([], pages)) == 1


def test_a_promise_that_is_gone_and_a_test_that_is_gone_are_noticed(pages) -> None:
    (pages / "README.md").write_text("It never leaks.\n")
    (pages / "test_a.py").write_text("def test_there(): ...\ndef helper(): ...\n")
    assert find_problems([Entry("README.md", "never leaks", ("test_a.py::test_there",))], pages) == []
    for proof in ("test_a.py::test_gone", "test_a.py::helper", "test_b.py::test_there", "proof.md", "test_a.py"):
        assert not exists(proof, pages)
        assert len(find_problems([Entry("README.md", "never leaks", (proof,))], pages)) == 1
    assert len(find_problems([Entry("docs/guarantee.md", "is long", ("README.md",))], pages)) == 2


def test_sentences_are_found_across_lines_and_in_tables() -> None:
    text = "One is\nhere. Two.\n\n```\nnever\n```\n| a | b |\n|---|---|\n| c | d |\n* e\n  f\n* g\n"
    assert list(find_sentences(text)) == ["One is here.", "Two.", "a | b", "c | d", "* e f", "* g"]
