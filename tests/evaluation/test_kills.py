"""A process that learns a stream is killed and resumed: the state at the end is that of an uninterrupted run."""

import json
import multiprocessing
import os
import signal
import time

import numpy as np
import pytest

import consilience as cs

N, EVERY = 6000, 256


@pytest.fixture
def stream(tmp_path):
    """A file of three views; some rows lack one, and the classes change halfway."""
    rng = np.random.default_rng(0)
    path = tmp_path / "stream.jsonl"
    with open(path, "w") as file:
        for t in range(N):
            row = {view: (5 + 9 * rng.normal(size=3)).round(3).tolist() for view in ("audio", "video", "text")}
            label = int((row["audio"][0] - row["video"][1]) * (1 if t < N // 2 else -1) > 0)
            del row[rng.choice(["text", "audio"])]
            file.write(json.dumps({**row, "y": label}) + "\n")
    return path


def learn(path, checkpoint):
    model = cs.PassiveAggressive(average=True, prepare="standardize")
    result = cs.progressive_validation(
        model, path, classes=[0, 1], measures="log_loss", drift=True, on_drift="forget",
        checkpoint=checkpoint, every=EVERY, resume=True,
    )  # fmt: skip
    return model, result


def written(checkpoint):
    return checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0


def learn_and_kill(path, checkpoint):
    """Kill a process just after its next checkpoint; return whether it was still at work."""
    process = multiprocessing.get_context("fork").Process(target=learn, args=(path, checkpoint))
    before = written(checkpoint)
    process.start()
    while process.is_alive() and written(checkpoint) == before:
        time.sleep(0.0005)
    if process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    return process.exitcode == -signal.SIGKILL


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_stream_killed_three_times_ends_in_the_same_state(stream, tmp_path):
    model, result = learn(stream, tmp_path / "whole.checkpoint")
    assert len(result.drifts) > 0
    checkpoint = tmp_path / "some.checkpoint"
    assert sum(learn_and_kill(stream, checkpoint) for _ in range(3)) > 0
    resumed, again = learn(stream, checkpoint)
    assert again.measures == result.measures
    assert again.n_samples == result.n_samples == N
    assert [event.sample for event in again.drifts] == [event.sample for event in result.drifts]
    for view, weights in model.coef_.items():
        np.testing.assert_array_equal(resumed.coef_[view], weights)
    np.testing.assert_array_equal(resumed.intercept_, model.intercept_)
    np.testing.assert_array_equal(resumed._calibration.curvature, model._calibration.curvature)
    np.testing.assert_array_equal(resumed.error_curve_, model.error_curve_)
