"""The package as a whole: public names, light import, programs of the examples, house rules."""

import ast
import importlib
import inspect
import pkgutil
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import consilience

ROOT = Path(__file__).parents[1]
PROGRAMS = sorted((ROOT / "examples" / "programs").glob("p*.py"))


def test_every_public_name_is_there_and_nothing_else_is_public():
    for name in consilience.__all__:
        assert getattr(consilience, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = consilience.nonsense
    assert set(consilience.__all__) <= set(dir(consilience))
    checked = [node for node in ast.walk(ast.parse(Path(consilience.__file__).read_text())) if isinstance(node, ast.If)]
    typed = {alias.name for node in checked[0].body for alias in node.names}
    assert typed == set(consilience.__all__), "what type checkers see differs from what there is"


@pytest.mark.parametrize("name", [m.name for m in pkgutil.walk_packages(consilience.__path__, "consilience.")])
def test_all_lists_what_a_module_defines(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public), f"{name}.__all__ names {public}, which is not there"


def public_objects():
    for home in (consilience, consilience.kernels, consilience.datasets, consilience.solvers.certificates):
        for name in home.__all__:
            value = getattr(home, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield pytest.param(value, id=f"{home.__name__}.{name}")


@pytest.mark.parametrize("value", list(public_objects()))
def test_every_public_object_has_a_docstring_with_an_example(value):
    doc = inspect.getdoc(value) or ""
    abstract = value is consilience.kernels.Kernel or value is consilience.kernels.reference_views
    assert doc
    assert ">>>" in doc or abstract


def documented_defaults(value):
    """Return the parameters that a docstring describes, with their defaults as text; "optional" means None."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", inspect.getdoc(value) or "", re.DOTALL | re.MULTILINE
    )
    found = {}
    for names, kind in re.findall(r"^(\w[\w, ]*) : (.*)$", section[1] if section else "", re.MULTILINE):
        default = re.search(r"\bdefault=(.*)", kind)
        text = default[1] if default else "None" if kind.endswith("optional") else None
        found.update(dict.fromkeys(names.split(", "), text))
    return found


ESTIMATORS = [
    value
    for value in map(consilience.__getattr__, consilience.__all__)
    if inspect.isclass(value) and hasattr(value, "get_params")
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_documented_parameters_and_defaults_are_those_of_the_signature(estimator):
    signature = {name: given.default for name, given in inspect.signature(estimator).parameters.items()}
    documented = documented_defaults(estimator)
    assert list(documented) == list(signature)
    read = {
        name: inspect.Parameter.empty if text is None else ast.literal_eval(text) for name, text in documented.items()
    }
    assert read == signature


def imported_by(code):
    listing = f"{code}; import sys; print('\\n'.join(sys.modules))"
    out = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout
    return {line.partition(".")[0] for line in out.split()}


def test_importing_is_light():
    heavy = {"numba", "matplotlib", "pandas", "polars", "dask", "torch", "typer", "skops", "narwhals", "sklearn"}
    assert not imported_by("import consilience") & heavy
    light = imported_by("import sklearn; import consilience; consilience.Views; consilience.kernels.RBF()")
    assert not light & {"numba", "matplotlib", "dask", "torch", "typer", "skops"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_programs_run(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(program), run_name="__main__")


def test_there_are_programs():
    assert len(PROGRAMS) == 9


def imported_in(tree):
    """Return the packages that a module imports; strings count where it calls `__import__`."""
    nodes = list(ast.walk(tree))
    found = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    found += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0]
    if any(isinstance(node, ast.Name) and node.id == "__import__" for node in nodes):
        found += [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {name.partition(".")[0] for name in found}


def test_code_stands_behind_every_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    modules = Path(consilience.__file__).parent.rglob("*.py")
    imported = set().union(*(imported_in(ast.parse(path.read_text())) for path in modules))
    for extra in extras.keys() - {"test", "docs", "dev", "release"}:  # these are tools
        packages = {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in extras[extra]} - {"consilience"}
        assert packages & imported, f"nothing under src/ imports a package of the extra {extra}: {extras[extra]}"
