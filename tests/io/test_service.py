"""The example service: predictions while it learns, checkpoints, and a start where it stopped."""

import importlib.util
import json
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest

from consilience.io import read_checkpoint

PROGRAM = Path(__file__).parents[2] / "examples" / "service" / "serve.py"
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(400, 3)), RNG.normal(size=(400, 2))
LABELS = np.where(A[:, 0] + B[:, 1] > 0, "yes", "no")


@pytest.fixture
def serve():
    spec = importlib.util.spec_from_file_location("serve", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def running(serve, tmp_path):
    """Start services one after the other, and stop those that still run."""
    servers = []

    def start(every=100):
        server = serve.start(0, tmp_path / "model.cons", every)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
        if server.learner.is_alive():
            server.learner.stop()


def ask(server, path, content=None):
    connection = HTTPConnection(*server.server_address, timeout=20)
    connection.request("POST" if content is not None else "GET", path, json.dumps(content))
    answer = connection.getresponse()
    status, body = answer.status, json.loads(answer.read())
    connection.close()
    return status, body


def sample(i):
    return {"a": A[i].tolist(), "b": B[i].tolist()}


def test_it_predicts_while_it_learns_and_goes_on_after_a_stop(running, tmp_path):
    server = running()
    assert ask(server, "/predict", {"views": sample(0)}) == (200, {"label": None, "probabilities": {}})
    wrong = []

    def predict():
        for i in range(300, 330):
            status, answer = ask(server, "/predict", {"views": sample(i)})
            wrong.extend([status] if status != 200 or answer["label"] not in (None, "yes", "no") else [])

    threads = [threading.Thread(target=predict) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(200):
        assert ask(server, "/learn", {"views": sample(i), "label": LABELS[i]})[0] == 202
    for thread in threads:
        thread.join(60)
    assert not wrong
    deadline = time.monotonic() + 30
    while ask(server, "/")[1]["samples"] < 200 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ask(server, "/")[1] == {"samples": 200, "waiting": 0, "refused": 0}
    right = [ask(server, "/predict", {"views": sample(i)})[1]["label"] == LABELS[i] for i in range(300, 340)]
    assert np.mean(right) > 0.8
    server.shutdown()
    server.learner.stop()
    assert read_checkpoint(tmp_path / "model.cons")["model"].n_samples_seen_ == 200
    again = running()
    assert ask(again, "/")[1]["samples"] == 200
    assert sum(ask(again, "/predict", {"views": sample(340)})[1]["probabilities"].values()) == pytest.approx(1.0)


def test_bad_requests_are_answered_and_bad_samples_counted(running):
    server = running(every=2)
    for i in range(3):
        ask(server, "/learn", {"views": sample(i), "label": LABELS[i]})
    ask(server, "/learn", {"views": {"a": [1.0]}, "label": "yes"})
    deadline = time.monotonic() + 30
    while not ask(server, "/")[1]["refused"] and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ask(server, "/")[1] == {"samples": 3, "waiting": 0, "refused": 1}
    assert server.learner.checkpoint.exists()
    assert ask(server, "/elsewhere", {})[0] == 404
    assert ask(server, "/predict", {}) == (400, {"error": "'views' is missing"})
    assert ask(server, "/predict", [1])[0] == 400
    status, answer = ask(server, "/predict", {"views": {"a": [1.0]}})
    assert status == 400
    assert "columns" in answer["error"]
