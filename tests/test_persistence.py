"""Model files: the same model back, no code run, damage and strangers refused, writes whole or not at all."""

import json
import os
import pickle
import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import cases
from consilience import LateFusion, Nystroem, PerView, RandomFeatures, Views, load, save
from consilience.kernels import RBF, FromCallable, Linear, Precomputed, Spectrum, SubsetTree, center
from tiny_learners import TinyRidge

A = cases.histograms()
V = Views(a=A, s=sp.csr_array(A), t=["x", None, "z"] * 10, g=A @ A.T, precomputed="g")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.cons"


SAVED = {
    "views": V,
    "rows of a Gram": V[[3, 1, 4]],
    "late": LateFusion(LogisticRegression()).fit(Views(a=A), np.arange(30) % 2),
    "nystroem": Nystroem(kernels={"t": Spectrum(1), "g": Precomputed()}, n_components=4).fit(V),
    "fourier": RandomFeatures(random_state=0).fit(Views(a=A)),
    "old sparse matrices": Views(s=sp.csr_matrix(A)),
    "per view": PerView({"a": StandardScaler()}).fit(V),
}


@pytest.mark.parametrize("name", SAVED)
def test_the_same_comes_back(name, path):
    model = SAVED[name]
    save(model, path)
    again = load(path)
    if isinstance(model, Views):
        assert again == model
    elif hasattr(model, "predict"):
        np.testing.assert_array_equal(again.predict_proba(A), model.predict_proba(A))
        assert again.certificate() == model.certificate()
    else:
        data = Views(a=A) if name == "fourier" else V
        assert again.transform(data) == model.transform(data)


@pytest.mark.parametrize(
    "name", [name for name in [*cases.NUMERIC, *cases.COMPOSED] if name not in ("callable", "f k f")]
)
def test_kernels_come_back(name, path):
    kernel = {**cases.NUMERIC, **cases.COMPOSED}[name].resolved(A)
    save(kernel, path)
    again = load(path)
    assert repr(again) == repr(kernel)
    np.testing.assert_allclose(again(A), kernel(A), rtol=1e-14)


def test_structured_kernels_come_back(path):
    for kernel in (Spectrum(2), SubsetTree(), center(Spectrum(1)).resolved(["ab", "bc"])):
        save(kernel, path)
        assert repr(load(path)) == repr(kernel)


def test_functions_are_refused_before_anything_is_written(path):
    for kernel in (FromCallable(cases.linear_by_hand), Linear().mapped(cases.linear_by_hand)):
        with pytest.raises(TypeError, match=r"Not saved: .*linear_by_hand, which `load` would refuse"):
            save(kernel, path)
    assert not path.exists()


def test_other_types_must_be_named_on_both_sides(path):
    model = TinyRidge().fit(Views(a=A), A[:, 0])
    with pytest.raises(TypeError, match=r"tiny_learners.TinyRidge, which `load` would refuse"):
        save(model, path)
    save(model, path, trusted=["tiny_learners.TinyRidge"])
    with pytest.raises(ValueError, match=r"is refused: it holds tiny_learners.TinyRidge"):
        load(path)
    np.testing.assert_array_equal(load(path, trusted=["tiny_learners.TinyRidge"]).predict(A), model.predict(A))


class Bomb:
    exploded = False

    def __reduce__(self):
        return (os.system, ("exit 1",))

    def __setstate__(self, state):
        Bomb.exploded = True


def test_no_code_in_a_file_runs(path, tmp_path):
    pickled = tmp_path / "evil.pkl"
    pickled.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="is not a model file of consilience"):
        load(pickled)
    save(RBF(0.5), path)
    head, _ = split(path)
    evil = skops.io.dumps({"kernel": RBF(0.5), "bomb": type("Bomb", (Bomb,), {"__reduce__": object.__reduce__})})
    rewrite(path, head, evil)
    with pytest.raises(ValueError, match="is refused"):
        load(path)
    assert not Bomb.exploded


def split(path):
    _, head, payload = path.read_bytes().split(b"\n", 2)
    return json.loads(head), payload


def rewrite(path, head, payload, digest=True):
    import hashlib

    if digest:
        head = {**head, "sha256": hashlib.sha256(payload).hexdigest()}
    path.write_bytes(b"consilience model\n" + json.dumps(head).encode() + b"\n" + payload)


def test_every_flipped_byte_is_seen(path):
    save(RBF(0.5), path)
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if b'"version": "' in whole[:place] and b'", "sha256' in whole[place:]:
            continue  # the version of the library, which only messages use
        with pytest.raises(ValueError, match=re.escape(str(path))):
            load(path)


@pytest.mark.parametrize("cut", [0, 5, 30, 200, -1])
def test_a_truncated_file_is_refused(path, cut):
    save(RBF(0.5), path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"is not a model file|is damaged"):
        load(path)


def test_another_format_is_refused_by_name(path):
    save(RBF(0.5), path)
    head, payload = split(path)
    rewrite(path, {**head, "format": 99, "version": "7.0"}, payload)
    with pytest.raises(ValueError, match=r"has file format 99, written by version 7\.0"):
        load(path)
    rewrite(path, {"format": "x"}, payload, digest=False)
    for broken in ('{"format": Infinity}', "[" * 3000, "{}" + " " * 5000):
        path.write_bytes(b"consilience model\n" + broken.encode() + b"\n" + payload)
        with pytest.raises(ValueError, match="its header cannot be read"):
            load(path)
    for nothing in (b"", b"no archive", b"PK\x05\x06" + 18 * b"\0"):
        rewrite(path, head, nothing)
        with pytest.raises(ValueError, match="what it holds is not a model"):
            load(path)
    rewrite(path, {"format": "x"}, payload, digest=False)
    with pytest.raises(ValueError, match="its header cannot be read"):
        load(path)


def test_an_interrupted_write_leaves_the_old_file(path, monkeypatch):
    save(RBF(0.5), path)
    before = path.read_bytes()

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(RBF(0.7), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_files_have_ordinary_permissions(path):
    save(RBF(0.5), path)
    plain = path.parent / "plain"
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode


def test_without_skops_there_is_a_sentence(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install 'consilience\[io\]'"):
        save(RBF(0.5), path)


def test_a_missing_file_or_folder(path):
    with pytest.raises(FileNotFoundError):
        load(path)
    with pytest.raises(FileNotFoundError):
        save(RBF(0.5), path.parent / "no" / "folder" / "model.cons")
