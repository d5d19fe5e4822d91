"""Sets with one table each: parsers, digests, sizes."""

import itertools
from subprocess import CalledProcessError

import numpy as np
import pytest
import scipy.sparse as sp
from original_files import lines, zipped

from consilience.datasets._store import array_digest
from consilience.experiments import _tables as sets


@pytest.fixture
def arrays_of(data_folder):
    return lambda name: dict(np.load(data_folder / sets.SETS[name][0].file))


def libsvm(z, part):
    starts, places = z[f"X_{part}_indptr"], z[f"X_{part}_indices"].astype(int) + 1
    rows = [" ".join(f"{j}:1" for j in places[a:b]) for a, b in itertools.pairwise(starts)]
    return "\n".join(f"{label} {row}" for label, row in zip(z[f"y_{part}"], rows, strict=True)).encode()


def two_parts(z, delimiter):
    return [lines(z[f"X_{part}"], z[f"y_{part}"], delimiter=delimiter) for part in ("train", "test")]


ORIGINALS = {
    "abalone": lambda z: [zipped(abalone__data=lines(z["sex"], z["X_num"], z["y"]))],
    "glass": lambda z: [zipped(glass__data=lines(np.arange(214), z["X"], z["y"]))],
    "optdigits": lambda z: [zipped(**dict(zip(("optdigits__tra", "optdigits__tes"), two_parts(z, ","), strict=True)))],
    "page_blocks": lambda z: [zipped(**{"page-blocks__data__Z": lines(z["X"], z["y"], delimiter=" ")})],
    "satimage": lambda z: [zipped(**dict(zip(("sat__trn", "sat__tst"), two_parts(z, " "), strict=True)))],
    "yeast": lambda z: [zipped(yeast__data=lines(z["sequence_name"], z["X"], z["y"], delimiter="  "))],
    "a9a": lambda z: [libsvm(z, "train"), libsvm(z, "test")],
}


@pytest.mark.parametrize("name", sets.SETS)
def test_files_and_parsers_have_the_digest_of_the_table(name, arrays_of, monkeypatch):
    """The arrays, written in the format of the public home and parsed again, have the digest of the table."""
    monkeypatch.setattr(sets, "unpack_lzw", lambda packed: packed)  # tested below
    source, z = sets.SETS[name][0], arrays_of(name)
    assert array_digest(z) == source.digest
    assert (name in ORIGINALS) == (source.parse is not None)
    for parsed in [source.parse(*ORIGINALS[name](z))] if source.parse else []:
        assert array_digest(parsed) == source.digest


# columns, sizes of the classes in sorted order, sizes of the splits
EXPECTED = {
    "abalone": (10, None, [(3133, 1044)]),
    "glass": (9, [70, 76, 13, 29, 9, 17], []),
    "optdigits": (64, None, [(3823, 1797)]),
    "page_blocks": (10, [28, 329, 115, 4913, 88], []),
    "satimage": (36, [703, 626, 1358, 1533, 707, 1508], [(4435, 2000)]),
    "yeast": (8, [463, 5, 35, 44, 51, 163, 244, 429, 20, 30], []),
    "a9a": (123, [24_720 + 12_435, 7841 + 3846], [(32_561, 16_281)]),
    "news20": (173_762, None, [(11_314, 7532)]),
    "news20_pairs": (1_664_476, None, [(11_314, 7532)]),
}


@pytest.mark.parametrize("name", sets.SETS)
def test_tables_classes_and_splits(name, arrays_of):
    arrays_of(name)  # skips without the files
    columns, sizes, splits = EXPECTED[name]
    X, y, found = sets.load_set(name)
    assert X.shape == (len(y), columns)
    assert X.dtype == np.float64
    assert sp.issparse(X) == (columns in (123, 173_762, 1_664_476))
    assert sizes is None or np.unique(y, return_counts=True)[1].tolist() == sizes
    assert [(len(train), len(test)) for train, test in found] == splits
    for train, test in found:
        assert len(np.union1d(train, test)) == len(train) + len(test) == len(y)


def test_unpack_what_compress_packed():
    assert sets.unpack_lzw(b"\x1f\x9d\x90") == b""
    assert sets.unpack_lzw(bytes.fromhex("1f9d9061c4041c28b020")) == b"abababababab"
    with pytest.raises(CalledProcessError):
        sets.unpack_lzw(b"PK\x03\x04")
