"""What a check of trust is: cases tried, cases that failed, and a record with its command and date.

Each script of this folder is one check::

    python trust/kills.py            a short run, as in the tests
    python trust/kills.py --long     the run whose figures are published; it writes docs/trust/kills.json

`python trust/page.py` makes docs/trust.md from these records, and `make trust` does all of it.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "docs" / "trust"


class Figure(NamedTuple):
    """One line of a record.

    Parameters
    ----------
    what : str
        What was tried, as a noun phrase: "`save` killed at a random moment".
    tried : int
        Number of cases.
    failed : int
        Number of cases in which the property did not hold; 0, or the run fails.
    note : str
        What was found, or a measured value with its unit.
    """

    what: str
    tried: int
    failed: int = 0
    note: str = ""


class Found(NamedTuple):
    """What a run returns: its figures, and tables of details as (title, heads, rows of text)."""

    figures: Sequence[Figure]
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = ()


@dataclass(frozen=True)
class Check:
    """A property of the library, and the run that tries to break it.

    Parameters
    ----------
    name : str
        Name of the script and of the record.
    title : str
        Heading on the page.
    property : str
        What holds, in one or two sentences.
    run : callable
        Takes whether the run is the long one; returns `Found`.
    limits : tuple of str
        What the check does not show, a sentence each.
    """

    name: str
    title: str
    property: str
    run: Callable[[bool], Found]
    limits: tuple[str, ...] = ()


def main(check: Check, arguments: Sequence[str] | None = None, folder: Path = RECORDS) -> int:
    """Run a check from the command line; the exit status is 1 if a case failed. A long run is recorded."""
    parser = argparse.ArgumentParser(description=check.property)
    parser.add_argument("--long", action="store_true", help="Try as many cases as the page states, and record them.")
    long = parser.parse_args(arguments).long
    start = time.monotonic()
    found = check.run(long)
    minutes = (time.monotonic() - start) / 60
    for each in found.figures:
        print(f"{each.what}: {each.tried:,} tried, {each.failed:,} failed" + (f"; {each.note}" if each.note else ""))
    for title, heads, rows in found.tables:
        print(f"\n{title}")
        for row in (heads, *rows):
            print("  " + " | ".join(row))
    if long:
        write_record(check, found, minutes, folder)
    return int(any(each.failed for each in found.figures))


def write_record(check: Check, found: Found, minutes: float, folder: Path) -> None:
    """Write the figures of a long run with command, date, commit and machine."""
    record = {
        "check": check.name,
        "command": f"python trust/{check.name}.py --long",
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "machine": f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores",
        "minutes": float(f"{minutes:.2g}"),
        "figures": [each._asdict() for each in found.figures],
        "tables": [{"title": title, "heads": heads, "rows": rows} for title, heads, rows in found.tables],
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{check.name}.json"
    part = file.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
    part.replace(file)


def commit() -> str:
    """Return the commit of the working tree, with a mark if the library was changed since.

    For a copy of the tree, the variable CONSILIENCE_COMMIT names the commit.
    """
    if "CONSILIENCE_COMMIT" in os.environ:
        return os.environ["CONSILIENCE_COMMIT"]

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True).stdout.strip()

    return git("rev-parse", "HEAD")[:12] + (", changed" if git("status", "--porcelain", "--", "src") else "")


def read_record(name: str, folder: Path = RECORDS) -> dict[str, Any] | None:
    """Return the record of a long run, or None."""
    file = folder / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
