"""The check of devices runs, and a device that rounds in another way is found."""

import numpy as np
import pytest

import devices


def test_a_short_run():
    pytest.importorskip("array_api_strict")
    found = devices.run(long=False)
    assert found.figures
    assert not any(figure.failed for figure in found.figures)


def test_another_fit_is_found(monkeypatch, capsys):
    monkeypatch.setattr(devices, "libraries", lambda: [("coarse", lambda x: np.float32(x).astype(np.float64))])
    assert sum(figure.failed for figure in devices.run(long=False).figures) > 0
    assert "differs by" in capsys.readouterr().out
