"""Make docs/trust.md from the records of long runs: ``python trust/page.py``."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from check import RECORDS, ROOT, Check, read_record

PAGE = ROOT / "docs" / "trust.md"
_INTRODUCTION = """# Tests of trust

What was tried to break the library, how often, and what happened. Each section is a script in `trust/`. It prints its
figures and writes them to `docs/trust`, from which this page is made. `make test` runs a short version of each, and
`make trust` runs all of them{hours}. A case fails if a property does not hold.
"""


def all_checks() -> list[Check]:
    """Return the checks of this folder, in the order of their titles."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    modules = [importlib.import_module(name) for name in names if name not in ("check", "page") and name[0] != "_"]
    return sorted((module.CHECK for module in modules), key=lambda check: check.title)


def page(checks: list[Check], folder: Path = RECORDS) -> str:
    """Return the page in Markdown."""
    records = {check.name: read_record(check.name, folder) for check in checks}
    minutes = sum(record["minutes"] for record in records.values() if record)
    hours = (
        f", in about {minutes / 60:.1f} hours of a machine with two cores" if minutes and all(records.values()) else ""
    )
    rows = [_overview(check, records[check.name]) for check in checks]
    parts = [_INTRODUCTION.format(hours=hours), _table(["check", "tried", "failed", "date"], rows)]
    for check in checks:
        parts.append(_section(check, records[check.name]))
    return "\n".join(parts)


def _overview(check: Check, record: dict | None) -> list[str]:
    link = f"[{check.title}](#trust-{check.name})"
    if record is None:
        return [link, "no long run yet", "", ""]
    tried, failed = (sum(figure[key] for figure in record["figures"]) for key in ("tried", "failed"))
    return [link, f"{tried:,}", f"{failed:,}", record["date"]]


def _section(check: Check, record: dict | None) -> str:
    parts = [f"(trust-{check.name})=", f"## {check.title}", ""]
    parts += [check.property if record else f"To be shown: {check.property}", ""]
    if record is None:
        parts += [f"`python trust/{check.name}.py --long` has no record yet.", ""]
    else:
        figures = [
            [each["what"], f"{each['tried']:,}", f"{each['failed']:,}", each["note"]] for each in record["figures"]
        ]
        parts.append(_table(["what", "tried", "failed", "found"], figures))
        for table in record["tables"]:
            parts += [f"{table['title']}:", "", _table(table["heads"], table["rows"])]
        parts += [
            f"`{record['command']}`, {record['date']}, {record['minutes']:g} minutes, {record['machine']}, "
            f"commit {record['commit']}.",
            "",
        ]
    if check.limits:
        parts += ["What this does not show: " + " ".join(check.limits), ""]
    return "\n".join(parts)


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(all_checks()), encoding="utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)}.")
