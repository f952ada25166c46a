"""What the command line says, to whom, and how it ends."""

from __future__ import annotations

import sys

import pytest
import typer

from dpfda.cli import entry
from dpfda.cli.failures import name_option, run_for_exit_code
from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal
from dpfda.errors import BudgetExceeded


def test_quiet_is_quiet_and_owner_notes_never_reach_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(quiet=True).say("a word")
    Terminal().owner_notes(["two rows were left out"])
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "NOT PRIVATE, for the data's owner only: two rows were left out.\n"


def test_a_parameter_is_named_as_the_option_that_it_is() -> None:
    assert name_option("domain must have low < high.") == "--domain must have low < high."
    assert (
        name_option("y_bounds must be positive with transform='log'.")
        == "--y-bounds must be positive with --transform log."
    )
    assert name_option("noise_sd must not be negative.") == "--noise must not be negative."
    for other in ("--epsilon must be given.", "x must lie in the domain.", "No row has both x and y."):
        assert name_option(other) == other


def test_details_are_for_those_who_ask(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().detail("a step")
    Terminal(verbose=True).detail("a step")
    assert capsys.readouterr().err == "  a step\n"


def test_a_failure_is_one_sentence_and_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    def overspend() -> None:
        raise BudgetExceeded("The budget is used up.")

    assert run_for_exit_code(lambda: None) == 0
    assert run_for_exit_code(overspend) > 0
    assert "The budget is used up." in capsys.readouterr().err


def test_examples_of_a_help_page_can_be_copied() -> None:
    assert example("dpfda demo") == "**Example**\n\n`dpfda demo`"
    assert example("a", "b").startswith("**Examples**")
    assert isinstance(new_app(group=True), typer.Typer)


def test_without_its_packages_the_command_says_how_to_install_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    for name in [name for name in sys.modules if name.startswith("dpfda.cli.") and name != "dpfda.cli.entry"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as stop:
        entry.main()
    assert stop.value.code == 2
    assert "pip install 'dpfda[cli]'" in capsys.readouterr().err
