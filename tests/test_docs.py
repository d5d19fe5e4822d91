"""Every code block of the pages runs and prints what the page shows; pages and docstrings keep to plain words."""

import contextlib
import inspect
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import consilience
from consilience import CoRegularizedRidgeClassifier, OnlinePerceptron, Views

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "guide").glob("*.md"))]
TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md", DOCS / "api.rst", *sorted((ROOT / "examples" / "gallery").iterdir())]
BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.M | re.S)
NOT_PLAIN = re.compile(r"\b(shall|dear|anew|whoever|is had|will not do|(?<!there )is no (?!longer))\b", re.I)
MODULES = ("certificates", "datasets", "graphs", "kernels", "report")


def public_docstrings():
    """Yield the name and docstring of every public object and of the methods that it defines here."""
    for home in (consilience, *(getattr(consilience, name) for name in MODULES)):
        for name in home.__all__:
            value = getattr(home, name)
            if inspect.ismodule(value) or not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            yield name, inspect.getdoc(value) or ""
            if inspect.isclass(value):
                for method, function in inspect.getmembers(value, inspect.isfunction):
                    if not method.startswith("_") and function.__module__.startswith("consilience"):
                        yield f"{name}.{method}", inspect.getdoc(function) or ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_blocks(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    if re.search(r"^import torch$", text, re.MULTILINE):
        pytest.importorskip("torch", reason="torch is not installed")
    names, printed = {"__name__": "__main__"}, None  # as if typed in
    for block in BLOCK.finditer(text):
        kind, body = block.groups()
        line = text[: block.start()].count("\n") + 2
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * line + body, str(page), "exec"), names)
            printed = out.getvalue()
        elif kind == "text" and printed is not None:
            assert printed.rstrip() == body.rstrip(), f"{page.name}, line {line}, prints something else"
            printed = None


def test_every_row_of_the_frameworks_table_runs():
    text = (DOCS / "guide" / "framework.md").read_text()
    first = next(body for kind, body in BLOCK.findall(text) if kind == "python")
    lines = re.findall(r"^\| .*\| `((?:Regressor|Classifier)\(.*\.fit\(.*\))` \|$", text, re.M)
    assert len(lines) == 21
    for line in lines:
        names = {}
        exec(first, names)
        assert eval(line, names).certificate().status in ("exact", "converged"), line


_FRAME = pd.DataFrame(np.eye(2), columns=["u", "v"])


def _predict_with(**views):
    rows = np.random.default_rng(0).normal(size=(6, 3))
    model = CoRegularizedRidgeClassifier().fit({"audio": rows, "video": rows}, [0, 1] * 3)
    return model.predict({name: rows[:, :columns] for name, columns in views.items()})


ERRORS = {
    "has 90 rows, the others 100": lambda: Views(a=np.ones((90, 1)), b=np.ones((100, 1)), c=[0.0] * 100),
    "contains NaN in row 3, column 2": lambda: Views(a=[[0, 0, 0]] * 3 + [[0, 0, np.nan]]).check_finite(),
    "have different samples": lambda: Views(a=pd.DataFrame([1.0], ["p"]), b=pd.DataFrame([1.0], ["q"])),
    "is not that of the samples": lambda: CoRegularizedRidgeClassifier().fit(
        pd.DataFrame(np.eye(2), ["p", "q"]), pd.Series([0, 1], ["p", "r"])
    ),
    "which the estimator was fitted on": lambda: (
        CoRegularizedRidgeClassifier().fit({"a": _FRAME}, [0, 1]).predict({"a": _FRAME[["u"]]})
    ),
    "it does not know 'text'": lambda: _predict_with(text=3),
    "features, but": lambda: _predict_with(audio=2),
    "so it must be a square Gram matrix": lambda: Views(a=np.ones((3, 2)), precomputed="a"),
    "y has no label at all": lambda: CoRegularizedRidgeClassifier().fit(np.eye(2), [None, None]),
    "was not announced": lambda: OnlinePerceptron().partial_fit(np.eye(2), ["a", "c"], classes=["a", "b"]),
}


@pytest.mark.parametrize(("message", "call"), ERRORS.items(), ids=ERRORS)
def test_error_messages(message, call):
    assert message in (DOCS / "troubleshooting.md").read_text()
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_lines_fit_the_page(page):
    blocks = [body for kind, body in BLOCK.findall(page.read_text()) if kind in ("python", "sh", "toml")]
    assert [line for body in blocks for line in body.splitlines() if len(line) > 75] == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_pages_use_plain_words(path):
    text = path.read_text()
    prose = BLOCK.sub("", text) if path.suffix == ".md" else text
    assert [found.group() for found in NOT_PLAIN.finditer(prose)] == []
    if path.suffix != ".py":  # there it may be a remainder
        assert re.findall(r"\d+ %", prose) == []  # 95%, without a space


def test_docstrings_use_plain_words():
    found = {name: NOT_PLAIN.findall(doc) + re.findall(r"\d+ %", doc) for name, doc in public_docstrings()}
    assert {name: words for name, words in found.items() if words} == {}
