"""Commands that run in this process: their results, JSON and exit codes."""

import contextlib
import io
import json
import sys
import warnings

import pytest

pytest.importorskip("typer", reason="typer is not installed")
from typer.testing import CliRunner

from consilience.cli.main import app, main


def run(*words, text=None):
    """Return the result of a command, with `text` as its standard input; raise what it raises."""
    result = CliRunner().invoke(app, [str(word) for word in words], input=text)
    if result.exception is not None:
        raise result.exception
    return result


def summary(*words, text=None):
    """Return the JSON object that a command prints."""
    return json.loads(run(*words, "--json", text=text).stdout, parse_constant=pytest.fail)


def predicted(*words):
    return summary("predict", *words)["predictions"]


def ended(*words):
    """Return the exit code of a command, and what it wrote to standard error."""
    before, said = sys.argv, io.StringIO()
    sys.argv = ["consilience", *map(str, words)]
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            main()
    except SystemExit as end:
        return end.code or 0, said.getvalue()
    finally:
        sys.argv = before
    raise AssertionError("a command ends by an exit code")


def refused(*words):
    """Return the sentence by which a command refuses its data."""
    code, said = ended(*words)
    assert code == 1
    *before, last = said.splitlines()
    assert last.startswith("Error: ")
    assert not [line for line in before if line.startswith("Error: ")]
    assert not before or before[0].startswith("Read ")  # the table of views
    return last.removeprefix("Error: ")
