"""How tests run the preparation scripts of benchmarks/data."""

import importlib.util
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "data"


def module(name):
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # a script finds the modules beside it
    spec = importlib.util.spec_from_file_location(f"preparation_{name}", FOLDER / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def prepare(name, *sources, out, monkeypatch, more=()):
    """Run a script as its command; return the exit status."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "argv", [name, *map(str, sources), "--out", str(out), *map(str, more)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    return ended.value.code


def known(data_folder, file):
    with np.load(data_folder / file) as z:
        return dict(z)
