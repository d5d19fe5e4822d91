"""Without an extra, what needs it says so in one sentence with the command that installs it; the rest works.

These tests need the library, pytest and hypothesis alone. Where packages of extras are installed, they are hidden.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import consilience as cs

EXTRA_PACKAGES = (
    "pyarrow", "openpyxl", "pandas", "polars", "skops", "typer", "rich", "matplotlib", "anndata", "mudata",
    "onnx", "dask", "distributed", "array_api_compat", "torch", "cupy",
)  # fmt: skip
RNG = np.random.default_rng(0)
X = cs.Views(a=RNG.normal(size=(40, 3)), b=RNG.normal(size=(40, 2)))
Y = (X["a"][:, 0] > 0).astype(int)


class Hidden:
    """Finds no package of an extra, as if it were not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRA_PACKAGES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture(autouse=True)
def _nothing_but_the_core(monkeypatch):
    for name in list(sys.modules):
        if name.partition(".")[0] in EXTRA_PACKAGES:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Hidden(), *sys.meta_path])


def written(folder, name):
    (folder / name).write_text("a,b,y\n1,2,0\n3,4,1\n")
    return folder / name


class Tensor:
    """A class that looks like a tensor of PyTorch, which does not know the array API standard itself."""


Tensor.__module__ = "torch"


# what is called, by the extra or package that its sentence must name
CALLS = {
    "save a model": ("[io]", lambda folder: cs.save(cs.kernels.RBF(), folder / "m.cons")),
    "load a model": ("[io]", lambda folder: cs.load(model_file(folder))),
    "read CSV": ("[frames]", lambda folder: cs.read_samples([written(folder, "t.csv")])),
    "read Parquet": ("[frames]", lambda folder: cs.read_samples([written(folder, "t.parquet")])),
    "read Arrow": ("[frames]", lambda folder: cs.read_samples([written(folder, "t.arrow")])),
    "read Excel": ("[frames]", lambda folder: cs.read_samples([written(folder, "t.xlsx")])),
    "read blocks of rows": ("[frames]", lambda folder: list(cs.read_blocks(written(folder, "t.csv")))),
    "read AnnData": ("[omics]", lambda folder: cs.read_samples([written(folder, "t.h5ad")])),
    "read MuData": ("[omics]", lambda folder: cs.read_samples([written(folder, "t.h5mu")])),
    "views as MuData": ("[omics]", lambda folder: X.to_mudata()),
    "views as a frame": ("pandas", lambda folder: X.to_frame()),
    "weights of views drawn": ("[plot]", lambda folder: cs.ViewWeightsDisplay.from_estimator(fitted())),
    "export": ("[onnx]", lambda folder: cs.io.to_onnx(cs.OnlinePerceptron().fit(X, Y))),
    "a leaderboard as a frame": ("pandas", lambda folder: board().to_frame()),
    "predictions as a frame": ("pandas", lambda folder: board().predictions_to_frame()),
    "a stream as a frame": ("pandas", lambda folder: cs.progressive_validation(cs.OnlinePerceptron(), X, Y).to_frame()),
    "importances as a frame": ("pandas", lambda folder: cs.feature_importances(fitted(), X, Y).to_frame()),
}  # fmt: skip


def fitted():
    return cs.MultipleKernelRidgeClassifier().fit(X, Y)


def board():
    return cs.compare(X, Y, estimators=["EarlyFusion"], cv=2, baselines=False)


def model_file(folder):
    (folder / "m.cons").write_bytes(b'consilience model\n{"format": 1, "version": "0", "sha256": "%s"}\n' % EMPTY)
    return folder / "m.cons"


EMPTY = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256 of nothing


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_extra_is_told_by_a_sentence(name, tmp_path):
    extra, call = CALLS[name]
    with pytest.raises(ImportError, match=re.escape(extra)) as caught:
        call(tmp_path)
    assert re.search(r"pip install ('consilience\[\w+\]'|pandas)\.", str(caught.value))


def test_a_data_frame_needs_narwhals(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)  # newer versions of scikit-learn bring it
    with pytest.raises(ImportError, match=r"needs the package narwhals: pip install 'consilience\[frames\]'\."):
        cs.as_views(SimpleNamespace(columns=["a__1"], shape=(2, 1)), views="prefix")


def test_weights_of_kernels_need_pandas():
    with pytest.raises(AttributeError, match=re.escape("needs pandas: pip install pandas.")):
        _ = cs.MultipleKernelRidge(["linear", "rbf"]).fit(X, Y).kernel_weights_


def test_arrays_of_other_libraries_need_the_standard():
    with pytest.raises(ImportError, match=r"consilience\[gpu\]"):
        cs._backend.namespace(Tensor())
    with pytest.raises(ImportError, match=r"consilience\[torch\]"):
        cs._backend.tensor_on(np.ones(2), "cuda")


def test_the_command_line_says_what_it_needs():
    hide = "import sys; sys.modules.update(typer=None, rich=None); import consilience.cli.main"
    ended = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr == "The command line needs typer and rich: pip install 'consilience[cli]'.\n"


def test_the_core_works_alone(tmp_path):
    model = cs.ConsensusClassifier().fit(X, Y)
    assert model.score(X, Y) > 0.8
    assert "a" in repr(model) + X._repr_html_() + model._repr_html_()
    file = cs.report.write_report(tmp_path / "r.html", cs.report.examine(X, Y, board()))
    assert "</html>" in file.read_text(encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text('{"a": [1.0], "y": "up"}\n{"a": [-1.0], "y": "down"}\n', encoding="utf-8")
    result = cs.progressive_validation(cs.OnlinePerceptron(), cs.read_stream(tmp_path / "rows.jsonl"))
    assert result.n_samples == 2
    cs.io.write_checkpoint({"model": cs.OnlinePerceptron().fit(X, Y)}, tmp_path / "c.cons")
    assert cs.load(tmp_path / "c.cons")["model"].n_samples_seen_ > 0


def test_every_package_of_an_extra_is_hidden_here():
    file = Path(__file__).parents[1] / "pyproject.toml"
    extras = tomllib.loads(file.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    lines = [line for name, own in extras.items() if name not in ("test", "docs", "dev", "release") for line in own]
    packages = {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in lines} - {"consilience"}
    assert packages <= {*EXTRA_PACKAGES, "narwhals"}
