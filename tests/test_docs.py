"""Every code block of the pages runs, and what a page says it prints is what it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "guide").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_blocks(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    names, printed = {"__name__": "__main__"}, None  # as if typed in
    for block in re.finditer(r"^```(python|text)\n(.*?)^```$", text, re.M | re.S):
        kind, body = block.groups()
        line = text[: block.start()].count("\n") + 2
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * line + body, str(page), "exec"), names)
            printed = out.getvalue()
        elif printed is not None:
            assert printed.rstrip() == body.rstrip(), f"{page.name}, line {line}, prints something else"
            printed = None
