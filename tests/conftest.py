"""Fixtures shared by the tests, and the list of what did not run."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # one process per core: threads of BLAS would only wait for each other
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

import functools
import gc
import signal
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from sklearn.base import BaseEstimator

settings.register_profile("consilience", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("consilience")

# scikit-learn reads the signature of a class whenever it needs names of parameters, which is a tenth of many tests
_names_of = functools.cache(BaseEstimator._get_param_names.__func__)
BaseEstimator._get_param_names = classmethod(lambda cls: list(_names_of(cls)))


def pytest_collection_finish():
    """Keep the thousands of tests out of garbage collection, which would visit each of them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def data_folder():
    folder = os.environ.get("CONSILIENCE_DATA")
    if not folder:
        pytest.skip("CONSILIENCE_DATA is not set: the folder with the real data sets is not known")
    return Path(folder)


@pytest.fixture(scope="session")
def cp():
    """Return cvxpy, which solves the same problems by a conic solver."""
    return pytest.importorskip("cvxpy", reason="cvxpy is not installed: conic comparisons run with the dev extra")


@pytest.fixture(scope="session", autouse=True)
def _control_c():
    """Raise KeyboardInterrupt on SIGINT: a shell that runs the tests in the background makes them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _skip_reasons(config):
    """Return the number of skipped tests for each reason, and the reasons that CONSILIENCE_REQUIRE forbids."""
    counts = Counter()
    for report in config.pluginmanager.get_plugin("terminalreporter").stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        counts[f"all of {report.nodeid}: {reason}" if report.when == "collect" else reason] += 1
    words = [word.strip().lower() for word in os.environ.get("CONSILIENCE_REQUIRE", "").split(",") if word.strip()]
    return counts, [reason for reason in counts if any(word in reason.lower() for word in words)]


def pytest_sessionfinish(session):
    """Fail the run if a test was skipped for a reason that contains a word of CONSILIENCE_REQUIRE.

    The words are separated by commas, for example CONSILIENCE_REQUIRE=cvxpy,torch,playwright,chromium,data.
    """
    if hasattr(session.config, "workerinput"):  # the main process of pytest-xdist knows the results of all workers
        return
    if session.exitstatus == pytest.ExitCode.OK and _skip_reasons(session.config)[1]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """Print how many tests did not run, for each reason and in total; list them in the file CONSILIENCE_SKIPPED."""
    counts, forbidden = _skip_reasons(config)
    if os.environ.get("CONSILIENCE_SKIPPED"):
        skipped = {report.nodeid for report in terminalreporter.stats.get("skipped", [])}
        Path(os.environ["CONSILIENCE_SKIPPED"]).write_text("".join(f"{node}\n" for node in sorted(skipped)))
    for reason, count in counts.most_common():
        terminalreporter.write_line(f"Not run: {count} {'test' if count == 1 else 'tests'}, {reason}")
    if counts:
        terminalreporter.write_line(f"Not run in total: {counts.total()}")
    for reason in forbidden:
        terminalreporter.write_line(f"Failed, CONSILIENCE_REQUIRE does not allow this skip: {reason}", red=True)
