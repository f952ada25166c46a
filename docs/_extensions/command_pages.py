"""Sphinx extension: writes reference/commands.md from the command line itself, so that page and `--help` agree."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import typer
from sphinx.application import Sphinx

from dpfda.cli.main import COMMANDS

PAGE = "reference/commands.md"
HEAD = """# Commands

Written from the commands' own help. Every command takes `--help`. Exit codes: 0 done, 2 the request was refused (nothing was
spent), 1 the system failed, 130 interrupted.
"""


def write_page() -> str:
    """All commands by the panel in which `dpfda --help` shows them."""
    parts = [HEAD]
    for panel in dict.fromkeys(entry.panel for entry in COMMANDS.values()):
        parts.append(f"## {panel}\n")
        for name, entry in COMMANDS.items():
            if entry.panel == panel:
                command = typer.main.get_command(importlib.import_module(entry.module).app)
                parts += describe(f"dpfda {name}", command, entry.help)
    return "\n".join(parts)


def describe(path: str, command: Any, text: str = "") -> list[str]:
    """A heading, the help and the options of a command, then its subcommands."""
    subcommands = getattr(command, "commands", {})
    if list(subcommands) == [path.rsplit(maxsplit=1)[-1]]:  # an app of one command
        command, subcommands = next(iter(subcommands.values())), {}
    help_text = clean(command.help or text)
    rows = [row for parameter in command.params if (row := describe_parameter(parameter))]
    table = ["| option | meaning |", "|---|---|", *rows, ""] if rows else []
    parts = [f"### `{path}`\n", help_text, "", *table]
    for name, each in subcommands.items():
        parts += describe(f"{path} {name}", each)
    return parts


def describe_parameter(parameter: Any) -> str:
    """One row of a command's table; an empty text for what is hidden."""
    if getattr(parameter, "hidden", False) or parameter.name in ("help", "install_completion", "show_completion"):
        return ""
    if parameter.param_type_name == "argument":
        names, kind = [parameter.metavar or parameter.name.upper()], ""
    else:
        names, kind = parameter.opts, "" if parameter.is_flag else f" {parameter.metavar or ''}".rstrip()
    meaning = clean(getattr(parameter, "help", None) or "").replace("|", r"\|").replace("\n", " ")
    required = " Required." if parameter.required else ""
    return f"| `{', '.join(names)}{kind}` | {meaning}{required} |"


def clean(text: str) -> str:
    """Help without the terminal's marks."""
    return re.sub(r"\[/?[a-z ]+\]", "", text).replace("\b", "").strip()


def write(app: Sphinx) -> None:
    """Write the page if it is not current."""
    page = Path(app.srcdir) / PAGE
    text = write_page()
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
