"""Hostile requests to the example service, which listens on this machine alone."""

import importlib.util
import json
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import _hostile

PROGRAM = Path(__file__).parents[1] / "examples" / "service" / "serve.py"
SECONDS = 0.4  # for a request, in place of 30
LONGEST = 20.0  # seconds that any answer may take


def program() -> Any:
    """Return the example as a module."""
    spec = importlib.util.spec_from_file_location("serve", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ask(server: Any, path: str, content: Any, **headers: str) -> tuple[int, Any]:
    """Send a request; return the status and the answer."""
    connection = HTTPConnection(*server.server_address, timeout=LONGEST)
    try:
        body = content if isinstance(content, (bytes, type(None))) else json.dumps(content).encode()
        connection.request("POST" if content is not None else "GET", path, body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def send_raw(server: Any, content: bytes) -> bytes:
    """Send bytes; return what comes back until the service closes the connection."""
    with socket.create_connection(server.server_address, timeout=LONGEST) as connection:
        connection.sendall(content)
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
        return b"".join(parts)


def sample(k: int) -> dict[str, Any]:
    """Return a request that the service learns."""
    return {"views": {"a": [float(k % 5), 1.0 - k % 3], "b": [float(k % 2)]}, "label": "yes" if k % 2 else "no"}


def bodies(rng: Any) -> Iterator[tuple[str, Any]]:
    """Yield contents of requests that are not samples."""
    odd = [None, True, 1e308, -1, 10**400, "x", [], {}, [[]], {"a": None}, {"a": {"b": {}}}, "\ud800", 2**63, [1, "x"],
           [[1.0]], {"": 1}, 1e-320, ["a" * 5000]]  # fmt: skip
    while True:
        text = rng.choice(_hostile.STRINGS)
        yield "a hostile name", {"views": {text: [1.0]}, "label": text}
        yield "an odd label", {"views": {"a": [1.0, 2.0], "b": [0.0]}, "label": rng.choice(odd)}
        yield "an odd view", {"views": {"a": rng.choice(odd), "b": rng.choice(odd)}, "label": "yes"}
        yield "odd views", {"views": rng.choice(odd), "label": "no"}
        yield "not a sample", rng.choice(odd)
        yield "not JSON", rng.choice([b"{", b"\xff\xfe", b"", b"NaN", b"[" * 200_000, b"1" * 5000, b"{}}", b'"\x00"'])
        yield "numbers that are not finite", b'{"views": {"a": [NaN, Infinity], "b": [1e999]}, "label": NaN}'
        yield "many views", {"views": {f"v{k}": [1.0] for k in range(300)}, "label": "yes"}


def raw_requests() -> list[bytes]:
    """Return requests that are not well-formed HTTP, or promise more than they send."""
    head = b"POST /learn HTTP/1.1\r\nHost: x\r\n"
    lengths = [b"-1", b"99999999999", b"1e3", b"0x10", b"", b"+5", b"5, 5", b"\xc2\xb2", b"1048577", b"100"]
    return [
        *(head + b"Content-Length: " + own + b"\r\n\r\n{}" for own in lengths),
        head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}\r\n0\r\n\r\n", b"\0" * 100,
        b"GET " + b"/" * 70_000 + b"\r\n",
        b"GET / HTTP/9.9\r\n\r\n", head + b"X: y\r\n" * 300 + b"\r\n", b"POST", b"\r\n\r\n", b"PUT / HTTP/1.1\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.0\r\n\r\n", head + b"Content-Length: 50\r\n",
    ]  # fmt: skip


def hostile_requests(cases: int, rng: Any) -> Iterator[tuple[str | None, str]]:
    """Send hostile requests; yield what is wrong, and about which request."""
    module = program()
    with tempfile.TemporaryDirectory() as folder:
        module.Handler.timeout = SECONDS
        server = module.start(0, Path(folder) / "m.cons", 50)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            for k in range(20):
                ask(server, "/learn", sample(k))
            _wait(lambda: ask(server, "/", None)[1]["samples"] == 20)  # functions are compiled
            yield from _try_all(server, module, cases, rng)
            yield _goes_on(server), "learning afterwards"
        finally:
            server.shutdown()
            server.server_close()
            if server.learner.is_alive():
                server.learner.stop()


def _try_all(server: Any, module: Any, cases: int, rng: Any) -> Iterator[tuple[str | None, str]]:
    origin = {"Origin": rng.choice(["https://evil.example", "null", "http://localhost:8000"])}
    for path in ("/learn", "/predict"):
        status, _ = ask(server, path, sample(0), **origin)
        yield None if status == 403 else f"a web page got {status}", f"{path} with Origin"
        yield _too_large(server, path, module.LONGEST), f"{path} with a body that is too large"
    for number, (about, content) in zip(range(cases), bodies(rng), strict=False):
        try:
            status, _ = ask(server, "/predict" if number % 3 == 0 else "/learn", content)
            wrong = None if status in (200, 202, 400, 413, 503) else f"status {status}"
        except Exception as error:
            wrong = f"no answer: {error!r}"
        yield wrong or _stays_up(server), about
    raw = raw_requests()
    for content in raw if cases > 100 else raw[:3]:
        begun = time.monotonic()
        try:
            send_raw(server, content)
            took = time.monotonic() - begun
            wrong = f"it took {took:.0f} s" if took > LONGEST / 2 else None
        except TimeoutError:
            wrong = "the connection stays open"
        except OSError:
            wrong = None  # the service has closed it
        yield wrong or _stays_up(server), repr(content[:60])


def _too_large(server: Any, path: str, longest: int) -> str | None:
    """Promise a body that is too large; return what is wrong about the answer."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {longest + 1}\r\n\r\n"
    answer = send_raw(server, head.encode())
    return None if b" 413 " in answer[:40] else f"the answer is {answer[:40]!r}"


def _wait(done: Any) -> bool:
    """Wait until something holds; return whether it does after a while."""
    for _ in range(1200):
        if done():
            return True
        time.sleep(0.05)
    return False


def _stays_up(server: Any) -> str | None:
    """Return what is wrong if the service does not answer, or no longer learns."""
    learner = server.learner
    if not _wait(lambda: learner.samples.empty() or not learner.is_alive()):
        return "samples wait for a minute"
    status, _ = ask(server, "/", None)
    return f"status {status}" if status != 200 else None if learner.is_alive() else "it no longer learns"


def _goes_on(server: Any) -> str | None:
    """Learn a sample more; return what is wrong if it is not counted."""
    before = ask(server, "/", None)[1]["samples"]
    ask(server, "/learn", sample(1))
    if not server.learner.is_alive():
        return "it no longer learns"
    return None if _wait(lambda: ask(server, "/", None)[1]["samples"] > before) else "a good sample is not learned"
