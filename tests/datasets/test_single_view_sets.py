"""The benchmarks' sets with one table each: parsers, digests, sizes."""

import base64
import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from original_files import lines, zipped

from consilience.datasets._store import array_digest

PATH = Path(__file__).parents[2] / "benchmarks" / "single_view_sets.py"
if not PATH.is_file():
    pytest.skip("benchmarks/ is not here", allow_module_level=True)
SPEC = importlib.util.spec_from_file_location("single_view_sets", PATH)
sets = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(sets)


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


# b"ab" * 30000 as Unix compress packs it: codes of 9 and of 10 bits
PACKED = (
    "ADxh4!~`5Dupq&M1`{G&sIVc!hYlk`oG7s(#fug*V%(^)Bgc;(LxLPBvLwlqCR3tZsj?-@mo8(%oGG&=&6_rJ;@qjTC(oZgg905Yv?$S|Mw234"
    "s<bK7r%t0nohr2|)vH#sV%@5>E7z}H!-5?vwk+ARX49fwtF|rMw{GLYoh!F4-Me=4;@zvaFW<j@0|Oo`xG>?vh7%)Rthh1b$BrXIo-DaC<;#{c"
    "W8SQ}Gw08qLxUbIx-{w2rc<L{t-3Yq*REs3o-MmJ?c26<<KC^iH}BuRg99Hfyg2dW#*-souDm((=gy-;pDw*R_3PHNW8bd5JNNJ2!-F3$zC8K!"
    "=F_8Juf9F|_wM7vpD({Y{rmRw<KM5pKmY&!1qk4P0v1T%fd(ds;DQP^$l!wxMhM}A5>`mzg%)Or;f5M^$l-?`h6v(_B9=(vi6*9q;)*J^$l{AG"
    "#t7q#GS*1rjW*_p<BmG^$m5Sb1_|VlLKaEnkwzwo<dRA@$>ftxMhWGVQdUXjl~!hn<(67@$>o<`h6(1FVwOqfnP#Sm=9+4@$>y7G#tG+~a@I-b"
    "op$Dl=bn1@$>*Pb1`6n)f)+~Xp@t@k=%R`?%IKqxMhfYql2%ITrIu!j>86@?%IT+`h6?JaqLxbPsivli>Z+=?%Id4G#tQ4KveruLt+wWh>#n-?"
    "%ImMb1`F)4!WK*HvBoBg?6S%>%j~nxMhoq<(pF3Dwbo{f?Y7!>%k8(`h70bv;+9M9xwQf"
)


def test_unpack_what_compress_packed():
    assert sets.unpack_lzw(b"\x1f\x9d\x90") == b""
    assert sets.unpack_lzw(bytes.fromhex("1f9d9061c4041c28b020")) == b"abababababab"
    assert sets.unpack_lzw(base64.b85decode(PACKED)) == b"ab" * 30000
    codes = [ord("a"), 257, 256, 0, 0, 0, 0, 0, ord("b"), 257]  # clear (256), the group of eight filled up, then again
    bits = sum(code << 9 * i for i, code in enumerate(codes))
    assert sets.unpack_lzw(b"\x1f\x9d\x90" + bits.to_bytes(12, "little")) == b"aaa" + b"bbb"
    with pytest.raises(ValueError, match="not a file of Unix compress"):
        sets.unpack_lzw(b"PK\x03\x04")
