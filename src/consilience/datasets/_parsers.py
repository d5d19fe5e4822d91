"""Parsers of the original files of the public homes: bytes in, a dict of unscaled arrays out."""

import csv
import io
import zipfile

import numpy as np
import scipy.io

from ._store import SIZE_LIMIT, Arrays


def member(archive: bytes, name: str) -> bytes:
    """Return the file of that name from any folder of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        for info in file.infolist():
            # an archive may unpack to far more than its size
            if info.filename.rpartition("/")[2] == name and info.file_size <= SIZE_LIMIT:
                return file.read(info)
    raise ValueError(f"The archive has no file {name} of at most {SIZE_LIMIT} bytes")


def number_table(content: bytes, dtype: type, delimiter: str | None = None) -> np.ndarray:
    """Return a table of numbers."""
    return np.loadtxt(io.BytesIO(content), dtype=dtype, delimiter=delimiter, ndmin=2)


def parse_mfeat(archive: bytes) -> Arrays:
    """Read UCI's ``multiple+features.zip``."""
    types = dict.fromkeys(("fou", "kar", "zer", "mor"), np.float64) | {"fac": np.uint16, "pix": np.uint8}
    arrays = {view: number_table(member(archive, f"mfeat-{view}"), np.float64).astype(t) for view, t in types.items()}
    return arrays | {"y": np.repeat(np.arange(10, dtype=np.uint8), 200)}


def parse_nutrimouse(gene: bytes, lipid: bytes, diet: bytes, genotype: bytes) -> Arrays:
    """Read the four CSV files."""
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
