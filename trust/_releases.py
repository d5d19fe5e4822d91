"""What a release consists of, read from its files: versions, bounds of packages, workflows, wheel and sdist.

Each function returns how many things it compared, and a sentence for each that is wrong.
"""

import fnmatch
import importlib.util
import itertools
import re
import subprocess
import sys
import tarfile
import tomllib
import types
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

FRAMES = ("pandas", "polars")  # users bring them; their lower bounds are those of the tests
TOOLS = ("test", "docs", "dev", "release")  # extras of those who develop the library
SYSTEMS = {"ubuntu": "Linux", "macos": "macOS", "windows": "Windows"}


class Compared(NamedTuple):
    """How many things were compared, and a sentence for each that is wrong."""

    n: int
    problems: list[str]


def read(root: Path, name: str) -> str:
    """Return the text of a file of the project."""
    return (root / name).read_text(encoding="utf-8")


def project(root: Path) -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    return tomllib.loads(read(root, "pyproject.toml"))["project"]


def pythons(root: Path) -> list[str]:
    """Return the versions of Python that the classifiers name, the oldest first."""
    found = re.findall(r"Python :: (3\.\d+)$", "\n".join(project(root)["classifiers"]), re.MULTILINE)
    return sorted(found, key=lambda version: int(version.partition(".")[2]))


def load_sessions(root: Path) -> types.ModuleType:
    """Return noxfile.py as a module, with the names of its sessions in `names`; nox itself is not needed."""
    names: list[str] = []

    def session(python: Any = None, **_: Any) -> Callable:
        def keep(function: Any) -> Any:
            versions = [f"-{version}" for version in python] if isinstance(python, list) else [""]
            forms = [f"({form})" for form in getattr(function, "forms", [])] or [""]
            names.extend(f"{function.__name__}{version}{form}" for version in versions for form in forms)
            return function

        return keep

    def parametrize(_: str, forms: list[str]) -> Callable:
        def keep(function: Any) -> Any:
            function.forms = forms
            return function

        return keep

    nox = types.ModuleType("nox")
    stubs = {"session": session, "parametrize": parametrize, "param": lambda *_, id: id, "Session": object}
    vars(nox).update(stubs, options=types.SimpleNamespace())
    with mock.patch.dict(sys.modules, nox=nox):
        spec = importlib.util.spec_from_file_location("sessions_of_the_project", root / "noxfile.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    module.names = names
    return module


# -- versions
def version_of(root: Path) -> str:
    """Return `__version__` without an import of the library."""
    return re.search(r'^__version__ = "(.+)"$', read(root, "src/consilience/__init__.py"), re.MULTILINE)[1]


def compare_versions(root: Path) -> Compared:
    """Compare `__version__` with the changelog, and the release of the changelog with all places that state it.

    Between releases the version ends in .dev0. The first heading of the changelog is then the next release, and the
    second one the last release, which is cited.
    """
    next_one, _, developed = version_of(root).partition(".dev")
    sections = re.split(r"^## ", read(root, "CHANGELOG.md"), flags=re.MULTILINE)[1:]
    headings = [section.split()[0] for section in sections]
    problems = []
    if headings[0] != next_one:
        problems.append(f"CHANGELOG.md has version {headings[0]}, and the library {next_one}.")
    if not re.search(r"^- ", sections[0], re.MULTILINE):
        problems.append(f"The first section of CHANGELOG.md is empty: {sections[0][:50]!r}.")
    last = headings[1] if developed else next_one
    places = {
        "CITATION.cff": r"^version: (\S+)$",
        "docs/citing.md": r"version = \{(\S+)\}",
        "RELEASING.md": r"git tag -s v(\S+) ",
    }
    for name, pattern in places.items():
        found = re.search(pattern, read(root, name), re.MULTILINE)
        if found is None or found[1] != last:
            problems.append(f"{name} has version {found[1] if found else None}, and the last release is {last}.")
    return Compared(len(places) + 2, problems)


# -- Python and packages
def requirements(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the extra, or "" for the library itself, and each requirement of another package."""
    table = project(root)
    for extra, lines in {"": table["dependencies"], **table["optional-dependencies"]}.items():
        yield from ((extra, line) for line in lines if not line.startswith(f"{table['name']}["))


def bounds(root: Path) -> dict[str, set[str]]:
    """Return the lower bounds of each package that the library or one of its extras needs, those of tools left out."""
    found: dict[str, set[str]] = {}
    for extra, line in requirements(root):
        name, bound = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?(?:[>=]=([\w.]+))?", line).groups()
        if extra not in TOOLS or name in FRAMES:
            found.setdefault(name.lower(), set()).add(bound)
    return found


def supported(root: Path) -> dict[str, str]:
    """Return the oldest versions that docs/installation.md states, by package."""
    return dict(re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", read(root, "docs/installation.md"), re.MULTILINE))


def compare_bounds(root: Path) -> Compared:
    """Compare the lower bounds of pyproject.toml with the session `oldest` and with the page on installation."""
    stated, sessions, known = supported(root), load_sessions(root), bounds(root)
    lines = sessions.requirements("test", "omics", "onnx")
    pins = dict(pin.split("==") for pin in sessions.lower_bounds(lines))
    problems = [f"{line} of the extra '{extra}' has no bound." for extra, line in requirements(root) if "=" not in line]
    for name, given in known.items():
        if len(given) > 1:
            problems.append(f"{name} has several lower bounds: {', '.join(sorted(given))}.")
        bound = min(given)
        if name != "torch" and pins.get(name) != bound:
            problems.append(f"The session oldest has {name} {pins.get(name)}, and pyproject.toml {bound}.")
        if name != "torch" and stated.get(name) != bound:
            problems.append(f"docs/installation.md has {name} {stated.get(name)}, and pyproject.toml {bound}.")
    problems += [
        f"docs/installation.md has {name}, which is not needed." for name in stated.keys() - known - {"Python"}
    ]
    return Compared(2 * len(known) + len(list(requirements(root))), problems)


def compare_pythons(root: Path) -> Compared:
    """Compare the versions of Python in the classifiers, `requires-python`, sessions, workflows and pages."""
    versions, problems = pythons(root), []
    first = versions[0]
    texts = {
        "pyproject.toml": project(root)["requires-python"] == f">={first}",
        "README.md": f"Python {first} or newer" in read(root, "README.md"),
        "docs/installation.md": supported(root).get("Python") == first
        and all(version in read(root, "docs/installation.md") for version in versions),
        "Makefile": re.findall(r"python(3\.\d+)", read(root, "Makefile").partition(".PHONY")[0]) == versions[::-1],
    }
    problems += [
        f"{name} has other versions of Python than the classifiers." for name, right in texts.items() if not right
    ]
    names = load_sessions(root).names
    problems += [f"There is no session tests-{version}." for version in versions if f"tests-{version}" not in names]
    jobs = set(tested_jobs(root))
    wanted = set(itertools.product(SYSTEMS.values(), versions))
    problems += [f"No workflow tests Python {version} on {system}." for system, version in sorted(wanted - jobs)]
    problems += [
        f"A workflow tests Python {version} on {system}, which no classifier names."
        for system, version in jobs - wanted
    ]
    return Compared(len(texts) + len(versions) + len(wanted), problems)


# -- workflows
def workflows(root: Path) -> dict[str, Any]:
    """Return the parsed workflows by name of file; needs PyYAML, which Dask brings."""
    import yaml

    folder = root / ".github" / "workflows"
    return {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yml"))}


def variants(job: dict[str, Any]) -> list[dict[str, str]]:
    """Return the values of a job's matrix, one dict for each run of the job."""
    matrix = job.get("strategy", {}).get("matrix", {})
    if "include" in matrix:
        return matrix["include"]
    return [dict(zip(matrix, values, strict=True)) for values in itertools.product(*matrix.values())]


def filled(text: str, values: dict[str, str]) -> str:
    """Return a text of a workflow with the values of the matrix."""
    return re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda found: values[found[1]], text)


def tested_jobs(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the system and the Python of each run of a session with tests for each change."""
    for job in workflows(root)["tests.yml"]["jobs"].values():
        for values in variants(job):
            system = SYSTEMS.get(filled(job["runs-on"], values).partition("-")[0], "")
            for step in job["steps"]:
                ran = re.search(r"-s \"?tests-(3\.\d+)", filled(step.get("run", ""), values))
                if ran and applies(step.get("if", ""), system):
                    yield system, ran[1]


def applies(condition: str, system: str) -> bool:
    """Tell whether a step with a condition on the system runs there."""
    found = re.fullmatch(r"runner\.os ([!=])= '(\w+)'", condition)
    return found is None or (found[1] == "=") == (found[2] == system)


def check_workflows(root: Path) -> Compared:
    """Check that workflows have few permissions, pinned actions, limits of time, and sessions that exist."""
    names, problems, n = load_sessions(root).names, [], 0
    for file, workflow in workflows(root).items():
        if workflow.get("permissions") != {"contents": "read"}:
            problems.append(f"{file} has other permissions than to read the contents.")
        uses = re.findall(r"uses: (\S+)(.*)", read(root, f".github/workflows/{file}"))
        for action, comment in uses:
            if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action) or not re.match(r" # v\d", comment):
                problems.append(f"{file} uses {action}, which is not pinned by a commit with its version.")
        for title, job in workflow["jobs"].items():
            problems += [f"{file}, {title}: {text}" for text in _problems_of_job(job, names)]
        n += 1 + len(uses) + len(workflow["jobs"])
    return Compared(n, problems)


def _problems_of_job(job: dict[str, Any], names: list[str]) -> Iterator[str]:
    if "timeout-minutes" not in job:
        yield "there is no limit of time."
    if job.get("permissions", {}) != {} and (job["permissions"] != {"id-token": "write"} or "environment" not in job):
        yield "more is permitted than a trusted publication in an environment."
    for step in job["steps"]:
        if "checkout" in step.get("uses", "") and step.get("with", {}).get("persist-credentials") is not False:
            yield "the checkout keeps its credentials."
        if re.search(r"\$\{\{\s*github\.", step.get("run", "")):
            yield "a command has text of the event in it, which may hold commands."
        for values in variants(job):
            called = re.search(r"\bnox\b.*? -s (.*?)(?: -- .*)?$", filled(step.get("run", ""), values))
            for name in re.findall(r"[\w.()-]+", called[1] if called else ""):
                if name not in names:
                    yield f"there is no session {name}."


# -- files of a release
def tracked(root: Path) -> list[str]:
    """Return the files of the project, as git knows them, or all that are there where git does not know the folder."""
    known = (
        subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True)
        if (root / ".git").exists()
        else None
    )
    if known is not None and known.returncode == 0 and known.stdout:
        return [name for name in known.stdout.splitlines() if (root / name).is_file()]
    hidden = ("__pycache__", ".git", "build")
    paths = [path for path in root.rglob("*") if path.is_file() and not set(hidden) & set(path.relative_to(root).parts)]
    return sorted(path.relative_to(root).as_posix() for path in paths)


def in_manifest(root: Path, name: str) -> bool:
    """Tell whether a file is in the source distribution, by the rules of MANIFEST.in and of setuptools."""
    kept = name in ("README.md", "LICENSE", "pyproject.toml", "MANIFEST.in") or name.startswith("src/")
    for line in read(root, "MANIFEST.in").splitlines():
        command, _, rest = line.partition("#")[0].strip().partition(" ")
        words = rest.split()
        if command in ("include", "exclude") and any(fnmatch.fnmatch(name, word) for word in words):
            kept = command == "include"
        elif command in ("graft", "prune") and any(name.startswith(f"{word}/") for word in words):
            kept = command == "graft"
        elif command == "recursive-include" and name.startswith(f"{words[0]}/"):
            kept = kept or any(fnmatch.fnmatch(Path(name).name, word) for word in words[1:])
        elif command == "global-exclude" and any(fnmatch.fnmatch(Path(name).name, word) for word in words):
            kept = False
    return kept


def in_wheel(root: Path, name: str) -> bool:
    """Tell whether a file of the library is in the wheel: a module of a package, or data that pyproject.toml names."""
    path = Path(name).relative_to("src/consilience")
    if path.suffix == ".py":
        return all((root / "src" / "consilience" / folder / "__init__.py").exists() for folder in path.parents)
    data = tomllib.loads(read(root, "pyproject.toml"))["tool"]["setuptools"]["package-data"]["consilience"]
    return any(fnmatch.fnmatch(path.as_posix(), word) for word in data)


def check_files(root: Path) -> Compared:
    """Check that the source distribution has every file of the repository, and the wheel every file of the library."""
    names = tracked(root)
    library = [name for name in names if name.startswith("src/consilience/")]
    problems = [f"The source distribution lacks {name}." for name in names if not in_manifest(root, name)]
    problems += [f"The wheel lacks {name}." for name in library if not in_wheel(root, name)]
    return Compared(len(names) + len(library), problems)


def check_built(root: Path, folder: Path) -> Compared:
    """Check the files of a wheel and a source distribution that were built, byte for byte against the repository."""
    problems, n, version = [], 0, version_of(root)
    own = [name for name in tracked(root) if name.startswith("src/consilience/")]
    with zipfile.ZipFile(folder / f"consilience-{version}-py3-none-any.whl") as wheel:
        inside = {f"src/{name}": wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
        licensed = any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
    problems += [] if licensed else ["The wheel lacks its license."]
    problems += _differences(root, "wheel", own, inside)
    with tarfile.open(folder / f"consilience-{version}.tar.gz") as sdist:
        files = [each for each in sdist if each.isfile()]
        packed = {each.name.partition("/")[2]: sdist.extractfile(each).read() for each in files}
    made = [name for name in packed if name in ("PKG-INFO", "setup.cfg") or ".egg-info/" in name]
    problems += _differences(
        root, "source distribution", tracked(root), {k: v for k, v in packed.items() if k not in made}
    )
    n += len(own) + len(packed) + 1
    return Compared(n, problems)


def _differences(root: Path, what: str, names: list[str], packed: dict[str, bytes]) -> Iterator[str]:
    for name in sorted({*names, *packed}):
        if name not in packed:
            yield f"The {what} lacks {name}."
        elif name not in names:
            yield f"The {what} has {name}, which is not in the repository."
        elif packed[name] != (root / name).read_bytes():
            yield f"{name} of the {what} is another version than the one in the repository."
