"""The application that all commands belong to."""

import os
import shlex
from collections.abc import Sequence
from typing import Any

import typer

from . import _options as option
from ._output import say

app = typer.Typer(
    name="consilience",
    help="Learning from several views of the same samples.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


_words: list[str] = []  # of the command line, as the shell gave them


def remember_words(words: Sequence[str]) -> None:
    """Store the words of the command line, for reports."""
    _words[:] = words


def given_command() -> str:
    """Return the command line as text; empty if a command was called in another way."""
    return shlex.join(["consilience", *_words]) if _words else ""


class Stopped(Exception):
    """Ctrl-C, and what there is to say about it."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        say(f"consilience {__version__}")
        raise typer.Exit


@app.callback()
def _shared_options(
    debug: option.DebugFlag = False,
    version: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True, callback=_print_version),
) -> None:
    """Learning from several views of the same samples.

    Each command has examples: consilience compare --help.
    """
    if debug:
        os.environ["CONSILIENCE_DEBUG"] = "1"


def form_of_files(
    transpose: bool, encoding: str | None, na: list[str] | None, libsvm_base: int | None
) -> dict[str, Any]:
    """Return the options of `read_samples` about the form of files."""
    return {"transpose": transpose, "encoding": encoding, "na_values": na or (), "libsvm_base": libsvm_base}
