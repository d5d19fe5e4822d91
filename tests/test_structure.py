"""The limits that keep the code readable: sizes, bases, one meaning per name."""

import ast
import functools
import inspect
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

import consilience
from consilience.views import _blocks, validation

PACKAGE = Path(consilience.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = {
    "views", "kernels", "solvers", "batch", "online", "io", "evaluation", "report", "cli", "datasets", "experiments",
}  # fmt: skip


@functools.cache
def trees():
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in MODULES}


def functions(tree, inside=""):
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{inside}{node.name}", node
            yield from functions(node, f"{inside}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{inside}{node.name}.")
        else:
            yield from functions(node, inside)


def all_functions():
    return [(module, name, node) for module, tree in trees().items() for name, node in functions(tree)]


def test_only_rooms_stand_at_the_top_level():
    found = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    private = {name for name in found if re.fullmatch(r"_[a-z]+\.py", name)}
    assert found - private == ROOMS | {"__init__.py", "py.typed"}
    assert len(private) <= 3


def test_no_module_is_longer_than_800_lines():
    sizes = {path.relative_to(PACKAGE).as_posix(): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: size for name, size in sizes.items() if size > 800} == {}


def code_lines(node):
    """Lines of a function without its docstring."""
    first = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
    return node.end_lineno - node.lineno + 1 - (first.end_lineno - first.lineno + 1 if first else 0)


def test_no_function_is_longer_than_60_lines():
    sizes = {f"{module}: {name}": code_lines(node) for module, name, node in all_functions()}
    assert {name: size for name, size in sizes.items() if size > 60} == {}


def test_no_function_has_more_than_12_arguments():
    """Except for estimators' `__init__`, whose arguments are parameters, and commands, whose arguments are options."""
    # keyword-only parameters of these are the options of a comparison, and the forms of files
    front_door = {"evaluation/comparison.py: compare", "io/streams.py: read_stream"}
    counts = {}
    for module, name, node in all_functions():
        if not name.endswith("__init__") and not module.startswith("cli/"):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            counts[f"{module}: {name}"] = len([a for a in given if a.arg not in ("self", "cls")])
    assert {name: count for name, count in counts.items() if count > 12 and name not in front_door} == {}


def own_classes():
    for name in sorted(sys.modules):
        if name.startswith("consilience."):
            for value in vars(sys.modules[name]).values():
                if inspect.isclass(value) and value.__module__ == name:
                    yield value


def test_at_most_three_of_our_bases_stand_above_a_class():
    for name in consilience.__all__:
        getattr(consilience, name)
    mixins = {"ViewClassifier", "ViewRegressor"}
    deep = {}
    for cls in own_classes():
        bases = [
            b.__name__ for b in cls.__mro__[1:] if b.__module__.startswith("consilience") and b.__name__ not in mixins
        ]
        if len(bases) > 3:
            deep[f"{cls.__module__}.{cls.__name__}"] = bases
    assert deep == {}


def test_a_public_name_has_one_meaning():
    """No two modules define a module-level name without underscore.

    Experiments are left out: each file is read alone, as the protocol of its paper, with that paper's names.
    """
    places = defaultdict(list)
    for module, tree in trees().items():
        if module.startswith("experiments/"):
            continue
        for node in tree.body:
            names = []
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names = [node.name]
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            for name in names:
                if not name.startswith("_"):
                    places[name].append(module)
    assert {name: found for name, found in places.items() if len(set(found)) > 1} == {}


def test_only_one_file_calls_blas_or_lapack():
    """So that a device can be added behind it; `LinAlgError` is an exception's name and may stand anywhere."""
    pattern = re.compile(r"\b(?:scipy|np|numpy)\.linalg\.(?!LinAlgError)|\bscipy\.linalg\b|\blapack\b|\bblas\.")
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in MODULES
        if path.relative_to(PACKAGE).as_posix() not in ("solvers/linalg.py", "solvers/device_linalg.py")
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "cls", [consilience.CoRegularizedRidge, consilience.ViewMetricRidge, consilience.OutputKernelRidge]
)
def test_a_fit_validates_each_view_once(cls, monkeypatch):
    checked, made = Counter(), []
    check, of = validation._check_numbers, consilience.Views._of.__func__
    monkeypatch.setattr(validation, "_check_numbers", lambda name, X: (checked.update([name]), check(name, X))[1])
    monkeypatch.setattr(_blocks, "check_finite", lambda what, *rest: checked.update([what]))
    monkeypatch.setattr(consilience.Views, "_of", classmethod(lambda cls, *given: (made.append(1), of(cls, *given))[1]))
    rng = np.random.default_rng(0)
    cls().fit({"a": rng.normal(size=(30, 2)), "b": rng.normal(size=(30, 3))}, rng.normal(size=30))
    assert checked == {"a": 1, "b": 1}
    assert len(made) <= 3
