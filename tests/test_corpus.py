"""Files that once broke a reader, or might: each gives a result or a sentence, whichever reader takes it.

The file of a failing random case, which tests/fuzz.py keeps in build/fuzz, belongs into tests/corpus under the name of
its format and fault.
"""

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from consilience.kernels import SubsetTree
from fuzzing.properties import attempt

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
NEEDED = {".xlsx": "openpyxl", ".h5ad": "anndata", ".h5mu": "mudata", ".cons": "skops"}  # packages of extras


def samples(path):
    return cs.io.read_samples([path], target="y")


def samples_alone(path):
    return cs.io.read_samples([path])


def stream(path):
    return list(cs.io.read_stream(path, target="y", chunk=2))


def stream_of_sound_rows(path):
    return list(cs.io.read_stream(path, target="y", chunk=3, on_error="skip"))


def blocks(path):
    return list(cs.read_blocks(path, target="y", size=2))


def trees(path):
    kernel = SubsetTree()
    for line in path.read_bytes().decode("utf-8", "surrogateescape").splitlines():
        attempt(lambda line=line: kernel([line]))
    return kernel(["(S x)"])


def used(model):
    """Use a model that was read: it works, or raises ValueError or TypeError, as fuzzing asks of damaged states."""
    rng = np.random.default_rng(0)
    X = cs.Views(a=rng.normal(size=(8, 2)), b=rng.normal(size=(8, 3)))
    for name in ("predict", "certificate", "partial_fit"):
        if hasattr(model, name):
            given = {"predict": (X,), "certificate": (), "partial_fit": (X, np.arange(8) % 2)}[name]
            attempt(lambda name=name, given=given: getattr(model, name)(*given), doing=f"in {name}", any_text=True)
    return model


def model(path):
    return used(cs.load(path))


def checkpoint(path):
    content = cs.io.read_checkpoint(path)
    return used(content["model"] if isinstance(content, dict) and "model" in content else content)


TABLES = (samples, samples_alone, stream, stream_of_sound_rows)
READERS = {
    ".trees": (trees,),
    ".toml": (cs.io.read_layout,),
    ".cons": (model,),
    ".checkpoint": (checkpoint,),
    ".csv": (*TABLES, blocks),
    ".jsonl": (*TABLES, blocks),
    ".gz": (*TABLES, blocks),
    ".parquet": (*TABLES, blocks),
    ".arrow": (*TABLES, blocks),
    ".feather": (*TABLES, blocks),
    ".libsvm": TABLES,
    ".npz": TABLES,
    ".xlsx": TABLES,
    ".h5ad": TABLES,
    ".h5mu": TABLES,
}


def replay(path):
    """Read a file by every reader of its format; return the sentences of those that refuse it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = [attempt(lambda read=read: read(path), also=(OSError, MemoryError)) for read in READERS[path.suffix]]
    return [sentence for _, sentence in answers if sentence is not None]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_every_file_gives_a_result_or_a_sentence(path):
    if path.suffix in NEEDED and find_spec(NEEDED[path.suffix]) is None:
        pytest.skip(f"{NEEDED[path.suffix]} is not installed: files of this format run with its extra")
    for sentence in replay(path):
        assert "\x1b" not in sentence, "control codes reach the terminal"
        assert len(sentence) < 2000, "the sentence repeats the file"


def test_every_format_has_files_of_small_size():
    assert {path.suffix for path in CORPUS} == set(READERS)
    assert max(path.stat().st_size for path in CORPUS) < 64 << 10


# -- the replay can fail
@pytest.mark.parametrize("name", ["read_samples", "read_stream", "read_layout", "read_checkpoint"])
def test_a_reader_that_breaks_is_found(name, monkeypatch):
    def broken(*given, **named):
        raise IndexError("list index out of range")

    monkeypatch.setattr(cs.io, name, broken)
    monkeypatch.setitem(READERS, ".toml", (lambda path: cs.io.read_layout(path),))
    suffix = {"read_layout": ".toml", "read_checkpoint": ".checkpoint"}.get(name, ".csv")
    with pytest.raises(AssertionError, match="IndexError"):
        replay(next(path for path in CORPUS if path.suffix == suffix))


def test_a_raw_text_is_found(monkeypatch):
    def raw(*given, **named):
        raise ValueError("could not convert string to float: 'x'")

    monkeypatch.setattr(cs.io, "read_samples", raw)
    with pytest.raises(AssertionError, match="raw text"):
        replay(next(path for path in CORPUS if path.suffix == ".csv"))
