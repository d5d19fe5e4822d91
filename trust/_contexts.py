"""A plugin of pytest that tells coverage.py which test runs, and writes how long each test took.

Lines that a fixture of a module or session runs belong to every test that uses the fixture, so the fixture is their
context: "fixture NAME". Tests with their seconds of the processor and their fixtures go to the file CONTEXTS_OF_TESTS.
"""

import json
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import coverage
import pytest

_running = [""]
_tests: dict[str, Any] = {}
_failed: set[str] = set()
_LIMIT = float(os.environ.get("SECONDS_OF_TESTS", 0))


def _seconds() -> float:
    return sum(os.times()[:4])  # of this process and its children


def _stop(_: int, frame: Any) -> None:
    while frame is not None:
        if "importlib._bootstrap" in frame.f_code.co_filename:  # half a module would break later tests
            signal.setitimer(signal.ITIMER_VIRTUAL, 1)
            return
        frame = frame.f_back
    pytest.skip(f"took more than {_LIMIT:.0f} seconds")


@contextmanager
def _context(name: str) -> Generator[None, None, None]:
    recorder = coverage.Coverage.current()
    assert recorder is not None
    _running.append(name)
    recorder.switch_context(name)
    try:
        yield
    finally:
        _running.pop()
        recorder.switch_context(_running[-1])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test in its own context."""
    start = _seconds()
    with _context(item.nodeid):
        result = yield
    _tests[item.nodeid] = [round(_seconds() - start, 3), sorted(getattr(item, "fixturenames", []))]
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Stop a test after SECONDS_OF_TESTS, if there is such a limit."""
    signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _LIMIT)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, Any, Any]:
    """Run a fixture that several tests share in a context of the fixture."""
    if fixturedef.scope == "function":
        return (yield)
    with _context(f"fixture {fixturedef.argname}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
    """Leave out tests that fail or are skipped: they say nothing about a mutant."""
    report = yield
    if report.outcome != "passed":
        _failed.add(item.nodeid)
    return report


def pytest_sessionfinish() -> None:
    """Write the tests that passed."""
    passed = {name: of for name, of in _tests.items() if name not in _failed}
    with open(os.environ["CONTEXTS_OF_TESTS"], "w", encoding="utf-8") as file:
        json.dump(passed, file)
