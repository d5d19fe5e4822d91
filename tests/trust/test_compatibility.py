"""Versions and releases: the short run, and faults in copies of the files that it must find."""

import importlib
import io
import json
import re
import shutil
import sys
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

import cases
import consilience as cs

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "trust"))

compatibility = importlib.import_module("compatibility")
releases = importlib.import_module("_releases")
FILES = (
    "pyproject.toml", "noxfile.py", "CITATION.cff", "CHANGELOG.md", "RELEASING.md", "README.md", "MANIFEST.in",
    "Makefile", "LICENSE", "docs/citing.md", "docs/installation.md", "src/consilience/__init__.py",
    "src/consilience/py.typed", "src/consilience/report/__init__.py", "src/consilience/report/page.css",
    "tests/cases.py", ".github/workflows/tests.yml", ".github/workflows/nightly.yml", ".github/workflows/release.yml",
)  # fmt: skip


@pytest.fixture
def copy(tmp_path):
    """Return a copy of the files that a release is read from, in which nothing is wrong."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_short_run_has_no_failures():
    found = compatibility.run(False)
    assert [figure.failed for figure in found.figures] == [0] * len(compatibility.FILES)
    assert all(figure.tried or "is not installed" in figure.note for figure in found.figures)


def test_the_version_is_that_of_the_library():
    assert releases.version_of(ROOT) == cs.__version__


def test_between_releases_the_last_one_is_cited(copy):
    for name, old, new in (
        ("src/consilience/__init__.py", f'"{cs.__version__}"', '"9.1.0.dev0"'),
        ("CHANGELOG.md", "\n## ", "\n## 9.1.0 (not yet released)\n\n- Nothing yet.\n\n## "),
    ):
        text = (copy / name).read_text(encoding="utf-8").replace(old, new, 1)
        (copy / name).write_text(text, encoding="utf-8")
    assert releases.compare_versions(copy).problems == []
    (copy / "CITATION.cff").write_text("version: 9.1.0.dev0")
    assert releases.compare_versions(copy).problems == [
        f"CITATION.cff has version 9.1.0.dev0, and the last release is {cs.__version__}."
    ]


# -- faults of files
CLASSIFIER = '    "Programming Language :: Python :: 3.14",\n'
FAULTS = {
    "another version is cited": ("compare_versions", "CITATION.cff", "version: 0", "version: 9", "CITATION.cff has"),
    "the page cites another": ("compare_versions", "docs/citing.md", "{0.1", "{0.3", "docs/citing.md has"),
    "the changelog is older": ("compare_versions", "CHANGELOG.md", "## 0", "## 9", "CHANGELOG.md has"),
    "another tag": ("compare_versions", "RELEASING.md", "-s v0", "-s v1", "RELEASING.md has"),
    "a Python without a job": (
        "compare_pythons",
        "pyproject.toml",
        CLASSIFIER,
        CLASSIFIER + CLASSIFIER.replace("14", "15"),
        "No workflow tests Python 3.15 on macOS",
    ),
    "a job less": (
        "compare_pythons",
        ".github/workflows/tests.yml",
        ', "3.14"]',
        "]",
        "No workflow tests Python 3.14 on Windows",
    ),
    "a job more": ("compare_pythons", "pyproject.toml", CLASSIFIER, "", "which no classifier names"),
    "a system less": ("compare_pythons", ".github/workflows/tests.yml", ", windows-2025", "", "Python 3.11 on Windows"),
    "an older Python": ("compare_pythons", "pyproject.toml", '">=3.11"', '">=3.10"', "pyproject.toml has other"),
    "README": ("compare_pythons", "README.md", "Python 3.11 or", "Python 3.12 or", "README.md has other"),
    "make": ("compare_pythons", "Makefile", "python3.14 ", "", "Makefile has other"),
    "a bound": ("compare_bounds", "pyproject.toml", "numpy>=2.0", "numpy>=2.1", "docs/installation.md has numpy 2.0"),
    "no bound": ("compare_bounds", "pyproject.toml", "skops>=0.12", "skops", "skops of the extra 'io' has no bound"),
    "two bounds": ("compare_bounds", "pyproject.toml", "compat>=1.9", "compat>=1.8", "array-api-compat has several"),
    "not pinned": (
        "compare_bounds",
        "noxfile.py",
        '{name_of(line)}=={bound[1]}"',
        '{name_of(line)}==1"',
        "The session oldest has numpy 1",
    ),
    "not needed": ("compare_bounds", "docs/installation.md", "| onnx |", "| onxx |", "onxx, which is not needed"),
    "permissions": (
        "check_workflows",
        ".github/workflows/tests.yml",
        "contents: read",
        "contents: write",
        "permissions",
    ),
    "a tag of an action": (
        "check_workflows",
        ".github/workflows/nightly.yml",
        "checkout@11bd71901bbe5b1630ceea73d27597364c9af683",
        "checkout@v4",
        "not pinned",
    ),
    "no limit": (
        "check_workflows",
        ".github/workflows/nightly.yml",
        "    timeout-minutes: 90\n",
        "",
        "no limit of time",
    ),
    "credentials": (
        "check_workflows",
        ".github/workflows/nightly.yml",
        "credentials: false",
        "credentials: true",
        "keeps its credentials",
    ),
    "no environment": (
        "check_workflows",
        ".github/workflows/release.yml",
        "    environment: release\n",
        "",
        "more is permitted",
    ),
    "injection": (
        "check_workflows",
        ".github/workflows/release.yml",
        'test "$TAG"',
        'test "${{ github.ref_name }}"',
        "text of the event",
    ),
    "no session": (
        "check_workflows",
        ".github/workflows/nightly.yml",
        "session: newest",
        "session: latest",
        "no session latest",
    ),
    "a style is not packed": (
        "check_files",
        "pyproject.toml",
        '"report/page.css", ',
        "",
        "The wheel lacks src/consilience/report/page.css",
    ),
    "tests are not packed": (
        "check_files",
        "MANIFEST.in",
        "graft tests\n",
        "",
        "The source distribution lacks tests/cases.py",
    ),
    "packed and left out": (
        "check_files",
        "MANIFEST.in",
        "global-exclude ",
        "global-exclude *.cff ",
        "lacks CITATION.cff",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_file_is_found(fault, copy):
    function, name, old, new, text = FAULTS[fault]
    if function in ("compare_pythons", "check_workflows"):
        pytest.importorskip("yaml")
    compare = getattr(releases, function)
    assert compare(copy).problems == []
    path = copy / name
    changed = path.read_text(encoding="utf-8").replace(old, new, 1)
    assert changed != path.read_text(encoding="utf-8"), "the fault was not made"
    path.write_text(changed, encoding="utf-8")
    assert any(text in problem for problem in compare(copy).problems), compare(copy).problems


def test_a_folder_without_init_is_not_packed(copy):
    (copy / "src/consilience/report/__init__.py").unlink()
    (copy / "src/consilience/report/page.py").write_text("")
    assert releases.check_files(copy).problems == ["The wheel lacks src/consilience/report/page.py."]


# -- faults of what was built
def pack(folder, wheel, sdist):
    with zipfile.ZipFile(folder / f"consilience-{cs.__version__}-py3-none-any.whl", "w") as file:
        for name, content in wheel.items():
            file.writestr(name, content)
    with tarfile.open(folder / f"consilience-{cs.__version__}.tar.gz", "w:gz") as file:
        for name, content in sdist.items():
            entry = tarfile.TarInfo(f"consilience-{cs.__version__}/{name}")
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))


def test_faults_of_built_files_are_found(copy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    sdist = {name: (copy / name).read_bytes() for name in FILES}
    wheel = {name[4:]: content for name, content in sdist.items() if name.startswith("src/")}
    wheel["consilience.dist-info/licenses/LICENSE"] = b""
    pack(folder, wheel, {**sdist, "PKG-INFO": b""})
    assert releases.check_built(copy, folder).problems == []
    del sdist["noxfile.py"], wheel["consilience/py.typed"], wheel["consilience.dist-info/licenses/LICENSE"]
    wheel |= {"consilience/report/page.css": b"old", "consilience/left_behind.py": b""}
    pack(folder, wheel, sdist)
    assert releases.check_built(copy, folder).problems == [
        "The wheel lacks its license.",
        "The wheel has src/consilience/left_behind.py, which is not in the repository.",
        "The wheel lacks src/consilience/py.typed.",
        "src/consilience/report/page.css of the wheel is another version than the one in the repository.",
        "The source distribution lacks noxfile.py.",
    ]


# -- sessions
COUNTS = """<testsuites><testsuite errors="1" failures="2" skipped="3" tests="10" time="90">
<testcase><skipped message="could not import 'torch': No module named 'torch'"/></testcase>
<testcase><skipped message="torch is not installed"/></testcase>
<testcase><skipped message="no data"/></testcase></testsuite></testsuites>"""


def write_session(folder, name, digest, **more):
    told = {"session": name, "digest": digest, "python": "3.12.1", "packages": {"numpy": "2.0"}, **more}
    (folder / f"{name}.json").write_text(json.dumps(told))


def test_counts_of_a_session_are_read_if_it_ran_on_the_same_files(tmp_path):
    assert compatibility.read_session("tests-3.12", tmp_path, "d") is None
    write_session(tmp_path, "tests-3.12", "d")
    assert compatibility.read_session("tests-3.12", tmp_path, "d") is None, "it was stopped"
    (tmp_path / "tests-3.12.xml").write_text(COUNTS)
    assert compatibility.read_session("tests-3.12", tmp_path, "other") is None
    found = compatibility.read_session("tests-3.12", tmp_path, "d")
    assert (found.passed, found.failed, found.minutes) == (4, 3, 1.5)
    assert found.skipped == Counter({"torch is not installed": 2, "no data": 1})
    write_session(tmp_path, "build", "d", built=["a.whl", "a.tar.gz"])
    built = compatibility.read_session("build", tmp_path, "d")
    figures = compatibility.figures_of_sessions({"tests-3.12": found, "build": built})
    assert [(figure.tried, figure.failed) for figure in figures] == [(7, 3), (2, 0)]
    versions, skipped = compatibility.tables_of_sessions({"tests-3.12": found, "build": built})
    assert versions[2][0][:3] == ["tests-3.12", "3.12.1", "2.0"]
    assert len(versions[1]) == len(versions[2][0])
    assert skipped[2] == [["tests-3.12", "torch is not installed", "2"], ["tests-3.12", "no data", "1"]]


def test_a_session_without_a_result_fails_unless_its_python_is_missing(monkeypatch):
    lost = {"tests-3.12": None, "oldest": None, "newest": None}
    monkeypatch.setattr(
        compatibility.shutil, "which", lambda name: name if name in ("python3.11", "python3.12") else None
    )
    figures = compatibility.figures_of_sessions(lost)
    assert [figure.failed for figure in figures] == [1, 1, 0]
    assert figures[2].note == "not run: this Python is not installed here"


def test_sessions_that_have_not_run_are_started(copy, monkeypatch):
    started = []
    digest = releases.load_sessions(copy).digest(copy)
    (copy / "build/nox").mkdir(parents=True)
    write_session(copy / "build/nox", "build", digest, built=["a.whl"])
    monkeypatch.setattr(compatibility.subprocess, "run", lambda words, **_: started.append(words))
    monkeypatch.setattr(compatibility.shutil, "which", lambda *_, **__: "nox")
    found = compatibility.run_sessions(copy, ["build", "oldest"])
    assert found["build"].passed == 1
    assert found["oldest"] is None
    assert started[0][-4:] == ["-s", "oldest", "--", "quick"]
    monkeypatch.setattr(compatibility.shutil, "which", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="nox is not installed"):
        compatibility.run_sessions(copy, ["oldest"])


def test_a_digest_changes_with_the_library_and_the_tests(copy):
    sessions = releases.load_sessions(copy)
    before = sessions.digest(copy)
    (copy / "tests" / "trust").mkdir()
    (copy / "tests" / "trust" / "test_page.py").write_text("")
    assert sessions.digest(copy) == before
    for name in ("src/consilience/py.typed", "tests/cases.py", "pyproject.toml"):
        with open(copy / name, "a") as file:
            file.write("\n")
        before, old = sessions.digest(copy), before
        assert before != old


def test_the_sessions_of_the_check_exist_and_their_tests_too():
    sessions = releases.load_sessions(ROOT)
    assert set(compatibility.session_names(ROOT)) <= set(sessions.names)
    for words in (sessions.QUICK, sessions.PACKAGED, sessions.MINIMAL):
        assert all((ROOT / word).exists() for word in words if word.startswith("tests"))
    assert any("views" in word for word in sessions.QUICK), "frames of pandas and polars"


# -- scikit-learn's checks
def test_faults_of_contracts_are_found(monkeypatch):
    name, check = "early ridge", "check_fit2d_1sample"
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    _, problems = compatibility.check_contracts([name])
    assert [text for text in problems if "SCIPY_ARRAY_API" not in text] == []
    monkeypatch.setitem(cases.EXEMPT, name, {check: "a reason", "check_of_nothing": "a reason"})
    monkeypatch.setattr(cs.EarlyFusion, "score", lambda self, X: 0.0)
    total, problems = compatibility.check_contracts([name])
    text = "\n".join(problems)
    assert total["failed"] >= 1
    assert re.search(r"early ridge, check_fit_score_takes_y: ", text)
    assert f"early ridge, {check}: passes, but is exempted" in text
    assert "early ridge, check_of_nothing: there is no such check" in text


def test_every_exemption_is_in_the_table():
    rows = compatibility.exemptions()
    reasons = {reason for own in cases.EXEMPT.values() for reason in own.values()}
    assert {row[2] for row in rows} == reasons
    assert any("VectorPerceptron" in row[1] for row in rows)
