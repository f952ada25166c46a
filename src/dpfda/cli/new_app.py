"""The one way in which command files make their Typer, so that all help pages look alike."""

from __future__ import annotations

import typer


def new_app(*, group: bool = False) -> typer.Typer:
    """A Typer for one command file; `group` for a command with subcommands."""
    return typer.Typer(
        add_completion=False,
        no_args_is_help=group,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,  # a traceback with local variables would print raw data
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def example(*commands: str) -> str:
    """The end of a help page: commands to copy."""
    word = "Example" if len(commands) == 1 else "Examples"
    return f"**{word}**\n\n" + "\n\n".join(f"`{command}`" for command in commands)
