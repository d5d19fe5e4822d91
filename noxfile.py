"""Sessions that test the library in environments of their own, on every system: ``nox --list``.

    nox -s tests-3.12                 all tests with Python 3.12
    nox -s tests-3.12 oldest -- quick a part of the tests that takes a few minutes: see `QUICK`

The versions of Python are the classifiers of pyproject.toml, and the oldest versions of packages its lower bounds. A
Python that is not installed is skipped, and nox says so. Each run of tests writes its counts and the versions of Python
and packages to build/nox; `trust/compatibility.py` makes a table of them.
"""

import hashlib
import json
import re
import shutil
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [
    found[1]
    for line in PROJECT["classifiers"]
    if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
]
# One case of every kind of estimators in all checks of scikit-learn and of the library; scikit-learn's tools; kernels;
# frames of pandas and polars; tables, formats and model files; the command line
QUICK = (
    "-m", "not further", "tests/test_estimators.py", "tests/test_scikit_learn.py", "tests/kernels/test_kernels.py",
    "tests/views/test_views.py", "tests/views/test_names.py", "tests/io/test_formats.py",
    "tests/io/test_model_files.py", "tests/cli/test_cli.py",
)  # fmt: skip
# Every module of what was installed, by the examples of its docstrings; files, extras and the command line
PACKAGED = ("tests/test_extras.py", "tests/io/test_formats.py", "tests/cli/test_cli.py", "--pyargs", PROJECT["name"])
MINIMAL = (
    "-m", "not further", "tests/test_extras.py", "tests/kernels/test_kernels.py", "tests/solvers/test_certificates.py",
    "tests/test_estimators.py",
)  # fmt: skip
# Modules of the library are named by --pyargs: those of src would be a second copy of the one that is installed
ALL = ("tests", "--pyargs", PROJECT["name"])
DIST = ROOT / "build" / "dist"
RESULTS = ROOT / "build" / "nox"
_VERSIONS = """
import importlib.metadata, json, platform, sys
packages = {each.name.lower().replace("_", "-"): each.version for each in importlib.metadata.distributions()}
system = f"{platform.system()} {platform.machine()}"
print(json.dumps({"python": platform.python_version(), "system": system, "packages": packages}))
"""
# river compares itself with the library in tests; it asks for a newer SciPy than the library does
NOT_WITH_OLDEST = {"river"}

nox.options.sessions = ["lint", f"tests-{PYTHONS[0]}", "docs"]
nox.options.error_on_missing_interpreters = False
nox.options.default_venv_backend = "uv|virtualenv"


def name_of(requirement: str) -> str:
    """Return the package that a requirement names, as package indexes spell it."""
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


def requirements(*extras: str) -> list[str]:
    """Return the requirements of the library and of extras, with those of the extras that they include."""
    found = list(PROJECT["dependencies"])
    for extra in extras:
        for line in PROJECT["optional-dependencies"][extra]:
            own = re.fullmatch(rf"{PROJECT['name']}\[([\w,]+)\]", line)
            found += requirements(*own[1].split(",")) if own else [line]
    return sorted(set(found))


def lower_bounds(lines: list[str]) -> list[str]:
    """Return requirements as pins of their lower bounds: numpy>=2.0 becomes numpy==2.0."""
    pins = {}
    for line in lines:
        bound = re.search(r">=\s*([\w.]+)", line)
        if bound:
            pins[name_of(line)] = f"{name_of(line)}=={bound[1]}"
    return sorted(pins.values())


def tools(*names: str) -> list[str]:
    """Return the requirements of tools of a release, with the bounds of pyproject.toml."""
    return [line for line in PROJECT["optional-dependencies"]["release"] if name_of(line) in names]


def digest(root: Path = ROOT) -> str:
    """Return the SHA-256 of all that a session tests: the library, its tests and its requirements."""
    files = [root / "pyproject.toml", root / "noxfile.py"]
    for folder in ("src/consilience", "tests"):
        files += [path for path in (root / folder).rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    tests_of_checks = root / "tests" / "trust"  # these test the records, not the library
    found = hashlib.sha256()
    for path in sorted(files):
        if tests_of_checks not in path.parents:
            found.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def install_library(session: nox.Session, *words: str) -> None:
    """Install the library of this folder; modules that an earlier build left in build/lib would be installed too."""
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    session.install(*words)


def describe(session: nox.Session, **more: object) -> None:
    """Write what a session tests, with the versions of Python and packages, to build/nox."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{session.name}.xml").unlink(missing_ok=True)
    found = json.loads(session.run("python", "-c", _VERSIONS, silent=True, log=False))
    text = json.dumps({"session": session.name, "digest": digest(), **found, **more}, indent=1)
    (RESULTS / f"{session.name}.json").write_text(text + "\n", encoding="utf-8")


def run_tests(session: nox.Session, quick: Sequence[str], words: Sequence[str] = (), folder: Path = ROOT) -> None:
    """Run all tests, or those of `quick` where the words after ``--`` begin with quick; other words go to pytest."""
    words = list(words or session.posargs)
    if words[:1] == ["quick"]:
        words[:1] = quick
    elif not words or words[0].startswith("-"):
        words[:0] = ALL
    describe(session)
    with session.chdir(folder):
        session.run(
            "python", "-m", "pytest", f"--junitxml={RESULTS / session.name}.xml", "-p", "no:cacheprovider", *words,
            env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests with the packages of today."""
    install_library(session, ".[test]")
    run_tests(session, QUICK)


@nox.session(python=PYTHONS[0])
def oldest(session: nox.Session) -> None:
    """Run the tests with the oldest packages that pyproject.toml allows."""
    lines = [line for line in requirements("test", "omics", "onnx") if name_of(line) not in NOT_WITH_OLDEST]
    pins = Path(session.create_tmp()) / "oldest.txt"
    pins.write_text("\n".join(lower_bounds(lines)), encoding="utf-8")
    install_library(session, "--constraint", str(pins), ".", *lines)
    run_tests(session, QUICK)


@nox.session(python=PYTHONS[-1])
def newest(session: nox.Session) -> None:
    """Run the tests with the newest packages, also those that are not released yet."""
    install_library(session, "--pre", "--upgrade", ".[test]")
    run_tests(session, QUICK)


@nox.session(python=PYTHONS[0])
def minimal(session: nox.Session) -> None:
    """Install the library alone, and run tests that need no extra; missing extras must be told by a sentence."""
    lines = [line for line in requirements("test") if name_of(line) in ("pytest", "hypothesis")]
    install_library(session, ".", *lines)
    words = list(session.posargs)
    run_tests(session, MINIMAL, words if words[:1] == ["quick"] else ["quick", *words])


@nox.session(python=PYTHONS[0])
def build(session: nox.Session) -> None:
    """Build the wheel and the source distribution, and check what package indexes would show."""
    session.install(*tools("build", "twine"))
    shutil.rmtree(DIST, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(DIST))
    session.run("python", "-m", "twine", "check", "--strict", *map(str, sorted(DIST.iterdir())))
    describe(session, built=sorted(path.name for path in DIST.iterdir()))


@nox.session(python=PYTHONS[0], requires=["build"])
@nox.parametrize("form", [nox.param("*.whl", id="wheel"), nox.param("*.tar.gz", id="sdist")])
def package(session: nox.Session, form: str) -> None:
    """Install what `build` made in an empty environment, and run the tests in a folder without the source tree."""
    (file,) = DIST.glob(form)
    session.install(f"{PROJECT['name']}[test] @ {file.as_uri()}")
    folder = Path(session.create_tmp()).resolve()
    shutil.rmtree(folder / "tests", ignore_errors=True)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)  # the options of pytest
    words = list(session.posargs)
    run_tests(session, PACKAGED, words if words[:1] == ["quick"] else ["quick", *words], folder)


@nox.session(python=PYTHONS[0])
def lint(session: nox.Session) -> None:
    """Check style, types, the layers of imports and docstrings."""
    session.install("--editable", ".[dev]")
    files = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "src").rglob("*.py"))]
    for words in ("ruff check .", "ruff format --check .", "mypy", "lint-imports"):
        session.run(*words.split())
    session.run("numpydoc", "lint", *files)


@nox.session(python=PYTHONS[0])
def docs(session: nox.Session) -> None:
    """Build the pages; the guide shows the report of the demo."""
    session.install("--editable", ".[docs,cli]")
    (ROOT / "build").mkdir(exist_ok=True)
    session.run("consilience", "demo", "--report", "build/demo.html", silent=True)
    session.run(*["python", "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", "docs/_build/html"])


@nox.session(python=PYTHONS[0])
def fuzz(session: nox.Session) -> None:
    """Try random cases for ten minutes, from a new seed each time; ``-- --seconds 60`` for one minute."""
    session.install("--editable", ".[test]")
    session.run("python", "tests/fuzz.py", "--seed", str(int(time.time())), *(session.posargs or ["--seconds", "600"]))


@nox.session(python=PYTHONS[0])
def security(session: nox.Session) -> None:
    """Look for unsafe calls in the code, and for published holes in the packages that an installation brings.

    The second needs a network. A package that it cannot look up is an error, so that a run without answers fails.
    """
    session.install(".[cli,plot]", *tools("bandit", "pip-audit"))
    session.run("bandit", "--quiet", "--recursive", "--configfile", "pyproject.toml", "src")
    installed = session.run("python", "-m", "pip", "list", "--format=freeze", "--exclude", PROJECT["name"], silent=True)
    pins = Path(session.create_tmp()) / "installed.txt"
    pins.write_text(str(installed), encoding="utf-8")
    session.run("pip-audit", "--strict", "--disable-pip", "--no-deps", "--requirement", str(pins))
