"""Data sets with one table each, for experiments and benchmarks.

``load_set(name)`` returns the table, the target and the training and test rows, if the set has its own. Files are found
and checked as those of ``consilience.datasets``: in the folder CONSILIENCE_DATA, in the cache, or at the public home.

| name | rows x columns | target | original |
| --- | --- | --- | --- |
| abalone | 4177 x 10 (7 measures, sex as 0/1 for F, I, M) | rings, 1 to 29 | UCI 1; Nash et al. (1994), Waugh (1995) |
| glass | 214 x 9 | six kinds of glass | UCI 42; Evett, Spiehler (1987) |
| optdigits | 5620 x 64 | digits of 8 x 8 pixel counts | UCI 80; Alpaydin, Kaynak (1998) |
| page_blocks | 5473 x 10 | five kinds of blocks of documents | UCI 78; Esposito, Malerba, Semeraro (1994) |
| satimage | 6435 x 36 | six kinds of ground in satellite images | UCI 146; Michie, Spiegelhalter, Taylor (1994) |
| yeast | 1484 x 8 | ten places of proteins in the cell | UCI 110; Horton, Nakai (1996) |
| a9a | 48,842 x 123, sparse, binary | income of adults, -1 or +1 | LIBSVM; Platt (1998), Kohavi, Becker (1996) |
| news20 | 18,846 x 173,762, sparse, counts of words | 20 groups of posts | 20 Newsgroups by date; Lang (1995) |
| news20_pairs | 18,846 x 1,664,476, sparse, words and word pairs | 20 groups of posts | the same |

UCI states Creative Commons Attribution 4.0 for its sets; the others state no terms, for research use with citation.
"""

import io
import subprocess  # nosec B404 # gzip, without a shell
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from ..datasets._parsers import member, number_table
from ..datasets._sets import UCI
from ..datasets._store import ArrayFile, read_arrays

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
NEWS20 = "http://qwone.com/~jason/20Newsgroups (texts, from which the columns were counted)"
GLASS = (
    "building_windows_float_processed", "building_windows_non_float_processed", "vehicle_windows_float_processed",
    "vehicle_windows_non_float_processed", "containers", "tableware", "headlamps",
)  # fmt: skip
PAGE_BLOCKS = ("text", "horizontal line", "graphic", "vertical line", "picture")
SATIMAGE = (
    "red soil", "cotton crop", "grey soil", "damp grey soil", "soil with vegetation stubble",
    "mixture class (all types present)", "very damp grey soil",
)  # fmt: skip


Arrays = dict[str, np.ndarray]
Set = tuple[Any, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]  # a table, the target, (training, test) rows


# -- parsers of the original files
def _fields(content: bytes, delimiter: str | None = None) -> np.ndarray:
    return np.array([line.split(delimiter) for line in content.decode("ascii").splitlines() if line.strip()])


def _named_classes(table: np.ndarray, n: int, columns: str, classes: tuple[str, ...]) -> Arrays:
    """The columns and the classes, coded from 1, of a table with the class in column n."""
    return {
        "X": table[:, :n],
        "y": table[:, n].astype(np.int16),
        "feature_names": np.array(columns.split()),
        "class_codes": np.arange(1, len(classes) + 1, dtype=np.int16),
        "class_names": np.array(classes),
    }


def parse_abalone(archive: bytes) -> Arrays:
    """Return the arrays of the original archive."""
    rows = _fields(member(archive, "abalone.data"), ",")
    names = "Length, Diameter, Height, Whole weight, Shucked weight, Viscera weight, Shell weight"
    return {
        "X_num": rows[:, 1:8].astype(np.float64),
        "sex": rows[:, 0].astype("<U1"),
        "y": rows[:, 8].astype(np.int16),
        "train_idx": np.arange(3133, dtype=np.int32),
        "test_idx": np.arange(3133, 4177, dtype=np.int32),
        "feature_names": np.array(names.split(", ")),
    }


def parse_glass(archive: bytes) -> Arrays:
    """Return the arrays of the original archive."""
    table = number_table(member(archive, "glass.data"), np.float64, ",")[:, 1:]  # without the running number
    return _named_classes(table, 9, "RI Na Mg Al Si K Ca Ba Fe", GLASS)


def parse_page_blocks(archive: bytes) -> Arrays:
    """Return the arrays of the original archive."""
    table = number_table(unpack_lzw(member(archive, "page-blocks.data.Z")), np.float64)
    columns = "height lenght area eccen p_black p_and mean_tr blackpix blackand wb_trans"
    return _named_classes(table, 10, columns, PAGE_BLOCKS)


def parse_optdigits(archive: bytes) -> Arrays:
    """Return the arrays of the original archive."""
    return _two_parts(archive, "optdigits.tra", "optdigits.tes", ",")


def parse_satimage(archive: bytes) -> Arrays:
    """Return the arrays of the original archive."""
    codes = np.arange(1, len(SATIMAGE) + 1, dtype=np.int16)
    parts = _two_parts(archive, "sat.trn", "sat.tst", None)
    return parts | {"class_codes": codes, "class_names": np.array(SATIMAGE)}


def _two_parts(archive: bytes, train: str, test: str, delimiter: str | None) -> Arrays:
    arrays: Arrays = {}
    for part, file in {"train": train, "test": test}.items():
        table = number_table(member(archive, file), np.int16, delimiter)
        arrays |= {f"X_{part}": table[:, :-1].astype(np.uint8), f"y_{part}": table[:, -1]}
    return arrays


def parse_yeast(archive: bytes) -> Arrays:
    """Return the arrays of the original archive."""
    rows = _fields(member(archive, "yeast.data"))
    return {
        "X": rows[:, 1:9].astype(np.float64),
        "y": rows[:, 9].astype("<U3"),
        "sequence_name": rows[:, 0].astype("<U10"),
        "feature_names": np.array(["mcg", "gvh", "alm", "mit", "erl", "pox", "vac", "nuc"]),
    }


def parse_a9a(train: bytes, test: bytes) -> Arrays:
    """Return the arrays of the two original files."""
    arrays: Arrays = {}
    for part, content in {"train": train, "test": test}.items():
        X, y = load_svmlight_file(io.BytesIO(content), n_features=123, zero_based=False)
        arrays[f"X_{part}_indices"] = X.indices.astype(np.int16)
        arrays[f"X_{part}_indptr"] = X.indptr.astype(np.int32)
        arrays[f"X_{part}_shape"] = np.array(X.shape, dtype=np.int64)
        arrays[f"y_{part}"] = y.astype(np.int8)
    return arrays


def unpack_lzw(packed: bytes) -> bytes:
    """Unpack a file of Unix ``compress`` (.Z), which gzip reads and Python's modules do not."""
    done = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True)  # nosec B603 B607 # fixed words
    return done.stdout


# -- from arrays to a table, the target and splits
def _table(z: Arrays) -> Set:
    """A table whose classes are coded from 1 and named, or named at once."""
    return z["X"], z["class_names"][z["y"] - 1] if "class_names" in z else z["y"], []


def _abalone(z: Arrays) -> Set:
    X = np.hstack([z["X_num"], z["sex"][:, None] == np.array(["F", "I", "M"])])
    return X, z["y"].astype(np.int64), [(z["train_idx"].astype(np.intp), z["test_idx"].astype(np.intp))]


def _joined(z: Arrays) -> Set:
    """The official parts of a table; classes are named if the file has names."""
    if "X_train" in z:
        X = np.vstack([z["X_train"], z["X_test"]]).astype(np.float64)
    else:
        X = sp.vstack([_csr(z, "X_train"), _csr(z, "X_test")], format="csr")
    y = np.concatenate([z["y_train"], z["y_test"]]).astype(np.int64)
    train, test = np.split(np.arange(len(y)), [len(z["y_train"])])
    return X, z["class_names"][y - 1] if "class_names" in z else y, [(train, test)]


def _news20(z: Arrays) -> Set:
    return _csr(z, "X"), z["target_names"][z["y"]], [(z["train_idx"].astype(np.intp), z["test_idx"].astype(np.intp))]


def _csr(z: Arrays, name: str) -> sp.csr_matrix:
    """The CSR matrix stored in parts; without values, all of them are 1."""
    indices = z[f"{name}_indices"].astype(np.int32)
    values = z[f"{name}_data"].astype(np.float64) if f"{name}_data" in z else np.ones(len(indices))
    return sp.csr_matrix((values, indices, z[f"{name}_indptr"]), shape=tuple(z[f"{name}_shape"]))


def _uci(name: str, number: int, page: str, parse: Any, build: Any, digest: str) -> tuple[str, Any]:
    origin = f"UCI Machine Learning Repository, data set {number}"
    return name, (ArrayFile(f"uci_{name}.npz", digest, origin, (f"{UCI}/{number}/{page}.zip",), parse), build)


SETS: dict[str, Any] = dict([
    _uci("abalone", 1, "abalone", parse_abalone, _abalone,
         "d6ad293a46bc820083694e4e861d25b1d1fe2181ef0dd6855860c64cac7df961"),
    _uci("glass", 42, "glass+identification", parse_glass, _table,
         "d6712da6e06d118b69cb177fe874a9e93c8d4728f6bd0d96f42b09c4944ed537"),
    _uci("optdigits", 80, "optical+recognition+of+handwritten+digits", parse_optdigits, _joined,
         "d6b3100ab8542f5ad76d6708fc286876f4a2bd348e3f43198a7b6935ca57c2d0"),
    _uci("page_blocks", 78, "page+blocks+classification", parse_page_blocks, _table,
         "10114ffdcfb17cba17fc4fd3512025af13e1825ab4bdf801bcee7d6300f27609"),
    _uci("satimage", 146, "statlog+landsat+satellite", parse_satimage, _joined,
         "0b1e187b873a5884f355f576254fa31284e74faa67024818de5a0d1d852c18b8"),
    _uci("yeast", 110, "yeast", parse_yeast, _table,
         "bda8090b41260da215421ae708ef75faa8a668e5800260308002ea9e1be69c30"),
])  # fmt: skip
SETS["a9a"] = (
    ArrayFile("libsvm_a9a.npz", "dc81bd823ac9866cc8a9b2d82507eee4aa4ddca2b48964aaa73f7380e56f624d", LIBSVM,
              (f"{LIBSVM}/a9a", f"{LIBSVM}/a9a.t"), parse_a9a), _joined,
)  # fmt: skip
for _name, _file, _digest in (
    ("news20", "unigram_counts", "4f7f88a2da847c05f2deb60a85d19977d1cfb79cc1c9084fd65c734b32f88726"),
    ("news20_pairs", "binary_1_2gram", "43c00ba6fa64e6b639de6e74809d3d64924ab5001d6f61ac36fc1d168ed3dc27"),
):
    SETS[_name] = ArrayFile(f"news20_bydate_{_file}.npz", _digest, NEWS20, script="news20.py"), _news20


def load_set(name: str, data_home: Any = None) -> Set:
    """Return the table, the target and the list of (training, test) rows of a set."""
    source, build = SETS[name]
    return build(read_arrays(source, data_home))
