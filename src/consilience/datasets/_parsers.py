"""From the original files of the public homes to arrays: bytes in, a dict of arrays out, nothing scaled."""

import csv
import io
import zipfile

import numpy as np
import scipy.io
from sklearn.datasets import load_svmlight_file

from ._store import SIZE_LIMIT, Arrays

GLASS_CLASSES = (
    "building_windows_float_processed",
    "building_windows_non_float_processed",
    "vehicle_windows_float_processed",
    "vehicle_windows_non_float_processed",
    "containers",
    "tableware",
    "headlamps",
)
SATIMAGE_CLASSES = (
    "red soil",
    "cotton crop",
    "grey soil",
    "damp grey soil",
    "soil with vegetation stubble",
    "mixture class (all types present)",
    "very damp grey soil",
)
PAGE_BLOCK_CLASSES = ("text", "horizontal line", "graphic", "vertical line", "picture")
PAGE_BLOCK_FEATURES = (
    "height", "lenght", "area", "eccen", "p_black", "p_and", "mean_tr", "blackpix", "blackand", "wb_trans",
)  # fmt: skip
ABALONE_FEATURES = (
    "Length", "Diameter", "Height", "Whole weight", "Shucked weight", "Viscera weight", "Shell weight",
)  # fmt: skip


def member(archive: bytes, name: str) -> bytes:
    """Return the file of that name from a zip archive, in whatever folder of it."""
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        for info in file.infolist():
            if info.filename.rpartition("/")[2] == name and info.file_size <= SIZE_LIMIT:
                return file.read(info)
    raise ValueError(f"The archive has no file {name} of at most {SIZE_LIMIT} bytes")


def fields(content: bytes, delimiter: str | None = None) -> list[list[str]]:
    """Return the fields of every line that is not empty."""
    lines = content.decode("ascii").splitlines()
    return [line.split(delimiter) for line in lines if line.strip()]


def numbers(content: bytes, dtype: type, delimiter: str | None = None) -> np.ndarray:
    """Return a table of numbers."""
    return np.loadtxt(io.BytesIO(content), dtype=dtype, delimiter=delimiter, ndmin=2)


def coded_classes(names: tuple[str, ...]) -> Arrays:
    """Return the codes 1, 2, ... with the names of the classes."""
    return {"class_codes": np.arange(1, len(names) + 1, dtype=np.int16), "class_names": np.array(names)}


def parse_mfeat(archive: bytes) -> Arrays:
    """Read UCI's ``multiple+features.zip``."""
    types = {"fou": np.float64, "fac": np.uint16, "kar": np.float64, "pix": np.uint8, "zer": np.float64}
    types["mor"] = np.float64
    arrays = {view: numbers(member(archive, f"mfeat-{view}"), np.float64).astype(t) for view, t in types.items()}
    return arrays | {"y": np.repeat(np.arange(10, dtype=np.uint8), 200)}


def parse_nutrimouse(gene: bytes, lipid: bytes, diet: bytes, genotype: bytes) -> Arrays:
    """Read the four csv files."""
    files = {"gene": gene, "lipid": lipid, "diet": diet, "genotype": genotype}
    tables = {name: list(csv.reader(io.StringIO(text.decode()))) for name, text in files.items()}
    arrays = {}
    for view in ("gene", "lipid"):
        arrays[view] = np.array(tables[view][1:], dtype=np.float64)
        arrays[f"{view}_names"] = np.array(tables[view][0])
    for label in ("diet", "genotype"):
        names, codes = np.unique(np.array(tables[label][1:]).ravel(), return_inverse=True)
        arrays[label] = codes.astype(np.uint8)
        arrays[f"{label}_names"] = names
    return arrays


def parse_sarcos(mat: bytes) -> Arrays:
    """Read ``sarcos_inv_test.mat``."""
    table = scipy.io.loadmat(io.BytesIO(mat))["sarcos_inv_test"].astype(np.float32)
    return {"X": table[:, :21], "Y": table[:, 21:]}


def parse_abalone(archive: bytes) -> Arrays:
    """Read UCI's ``abalone.zip``."""
    rows = np.array(fields(member(archive, "abalone.data"), ","))
    return {
        "X_num": rows[:, 1:8].astype(np.float64),
        "sex": rows[:, 0].astype("<U1"),
        "y": rows[:, 8].astype(np.int16),
        "train_idx": np.arange(3133, dtype=np.int32),
        "test_idx": np.arange(3133, 4177, dtype=np.int32),
        "feature_names": np.array(ABALONE_FEATURES),
    }


def parse_glass(archive: bytes) -> Arrays:
    """Read UCI's ``glass+identification.zip``; the running number is dropped."""
    table = numbers(member(archive, "glass.data"), np.float64, ",")
    names = np.array(["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"])
    return {"X": table[:, 1:10], "y": table[:, 10].astype(np.int16), "feature_names": names} | coded_classes(
        GLASS_CLASSES
    )


def parse_optdigits(archive: bytes) -> Arrays:
    """Read UCI's ``optical+recognition+of+handwritten+digits.zip``."""
    return _two_parts(archive, {"train": "optdigits.tra", "test": "optdigits.tes"}, ",")


def parse_satimage(archive: bytes) -> Arrays:
    """Read UCI's ``statlog+landsat+satellite.zip``."""
    return _two_parts(archive, {"train": "sat.trn", "test": "sat.tst"}, None) | coded_classes(SATIMAGE_CLASSES)


def _two_parts(archive: bytes, files: dict[str, str], delimiter: str | None) -> Arrays:
    arrays = {}
    for part, file in files.items():
        table = numbers(member(archive, file), np.int16, delimiter)
        arrays[f"X_{part}"] = table[:, :-1].astype(np.uint8)
        arrays[f"y_{part}"] = table[:, -1]
    return arrays


def parse_page_blocks(archive: bytes) -> Arrays:
    """Read UCI's ``page+blocks+classification.zip``, whose table is packed by Unix ``compress``."""
    table = numbers(unpack_lzw(member(archive, "page-blocks.data.Z")), np.float64)
    arrays = {"X": table[:, :10], "y": table[:, 10].astype(np.int16), "feature_names": np.array(PAGE_BLOCK_FEATURES)}
    return arrays | coded_classes(PAGE_BLOCK_CLASSES)


def unpack_lzw(packed: bytes) -> bytes:
    """Unpack a file of Unix ``compress`` (.Z): LZW with codes of 9 to 16 bits, written in groups of eight codes."""
    if packed[:2] != b"\x1f\x9d" or not packed[2] & 0x80:
        raise ValueError("not a file of Unix compress with block mode")
    widest, clear = packed[2] & 0x1F, 256
    table: list[bytes] = [bytes([i]) for i in range(256)] + [b""]
    out, previous = [], b""
    width, start, bit = 9, 3 * 8, 3 * 8
    while bit + width <= 8 * len(packed):
        code = int.from_bytes(packed[bit // 8 : bit // 8 + 4], "little") >> bit % 8 & (1 << width) - 1
        bit += width
        if code == clear:
            del table[257:]
            previous = b""
        else:
            entry = table[code] if code < len(table) else previous + previous[:1]
            out.append(entry)
            if previous and len(table) < 1 << widest:
                table.append(previous + entry[:1])
            previous = entry
        wider = len(table) >= 1 << width and width < widest
        if code == clear or wider:  # a group of eight codes is filled up before the width changes
            start = bit = start + -(-(bit - start) // (8 * width)) * 8 * width
            width = 9 if code == clear else width + 1
    return b"".join(out)


def parse_skin(archive: bytes) -> Arrays:
    """Read UCI's ``skin+segmentation.zip``."""
    table = numbers(member(archive, "Skin_NonSkin.txt"), np.int16)
    return {
        "X": table[:, :3].astype(np.uint8),
        "y": table[:, 3].astype(np.int8),
        "feature_names": np.array(["B", "G", "R"]),
    }


def parse_yeast(archive: bytes) -> Arrays:
    """Read UCI's ``yeast.zip``."""
    rows = np.array(fields(member(archive, "yeast.data")))
    return {
        "X": rows[:, 1:9].astype(np.float64),
        "y": rows[:, 9].astype("<U3"),
        "sequence_name": rows[:, 0].astype("<U10"),
        "feature_names": np.array(["mcg", "gvh", "alm", "mit", "erl", "pox", "vac", "nuc"]),
    }


def parse_a9a(train: bytes, test: bytes) -> Arrays:
    """Read LIBSVM's ``a9a`` and ``a9a.t``."""
    return _libsvm_part(train, "train", 123) | _libsvm_part(test, "test", 123)


def parse_w8a(train: bytes) -> Arrays:
    """Read LIBSVM's ``w8a``."""
    return _libsvm_part(train, "train", 300)


def _libsvm_part(content: bytes, part: str, n_features: int) -> Arrays:
    X, y = load_svmlight_file(io.BytesIO(content), n_features=n_features, zero_based=False)
    return {
        f"X_{part}_indices": X.indices.astype(np.int16),
        f"X_{part}_indptr": X.indptr.astype(np.int32),
        f"X_{part}_shape": np.array(X.shape, dtype=np.int64),
        f"y_{part}": y.astype(np.int8),
    }
