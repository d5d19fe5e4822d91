"""Strategies of hypothesis are in one module, and what they draw is what they say."""

import ast
from pathlib import Path

import pytest
from hypothesis import find, given
from hypothesis.errors import NoSuchExample

import strategies
from strategies import labels, masks, streams, tables, whole

TESTS = Path(__file__).parent
EXEMPT = {"strategies.py": "the module of all strategies"}


def imported(path):
    """Return the names of all modules that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def defines_strategies(path):
    """Tell whether a file can define strategies of its own."""
    return any(name.startswith(("hypothesis.strategies", "hypothesis.extra")) for name in imported(path))


def test_no_other_module_defines_strategies():
    own = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py") if defines_strategies(path)}
    assert own == set(EXEMPT)


@pytest.mark.parametrize(
    "text",
    [
        "from hypothesis import strategies as st",
        "import hypothesis.strategies",
        "from hypothesis.extra.numpy import arrays",
    ],
)
def test_a_strategy_elsewhere_is_found(text, tmp_path):
    path = tmp_path / "test_own.py"
    path.write_text("from hypothesis import given\n")
    assert not defines_strategies(path)
    path.write_text(f"from hypothesis import given\n{text}\n")
    assert defines_strategies(path)


@given(streams())
def test_streams_have_every_class_and_every_sample_a_view(drawn):
    X, y, n_classes = drawn
    assert len(X) == len(y)
    assert set(y) == set(range(n_classes))
    assert X.mask is None or X.mask.any(axis=1).all()


@given(whole(1, 6).flatmap(lambda n: masks(n, 3)))
def test_masks_leave_every_sample_a_view(mask):
    assert mask.shape[1] == 3
    assert mask.any(axis=1).all()


@given(whole(1, 9).flatmap(lambda n: labels(n, 3)))
def test_labels_are_of_the_classes(y):
    assert set(range(min(len(y), 3))) <= set(y.tolist()) <= {0, 1, 2}


# -- cases shrink
def test_cases_shrink_to_small_ones():
    X, _, n_classes = find(streams(), lambda drawn: len(drawn[0]) >= 6)
    assert (len(X), n_classes, len(X.names)) == (6, 2, 1)
    assert X.mask is None
    table = find(tables(), lambda table: table.max() > 1)
    assert table.shape == (1, 4)
    mask = find(masks(4, 2), lambda mask: not mask.all())
    assert mask.sum() == 7


def test_what_cannot_be_is_not_drawn():
    with pytest.raises(NoSuchExample):
        find(strategies.categories(1, 4), lambda column: not any(column))
