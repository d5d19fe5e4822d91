"""Make libsvm_w8a.npz and uci_skin_nonskin.npz from the original text files.

python benchmarks/data/single_tables.py FOLDER --out DATA

FOLDER has one or both of these files. The arrays are exact.

- w8a, from https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/w8a (training part, 49,749 rows; Platt 1998;
  no terms stated). Columns are numbered from 0; all values are 1, so that only their places are stored.
- Skin_NonSkin.txt, from https://archive.ics.uci.edu/static/public/229/skin+segmentation.zip (245,057 pixels; Bhatt and
  Dhall 2012; Creative Commons Attribution 4.0, as UCI states for its sets). Columns: blue, green, red, class 1 or 2.
"""

import numpy as np
from _common import find_files, run
from sklearn.datasets import load_svmlight_file


def read_w8a(path):
    X, y = load_svmlight_file(str(path), n_features=300, zero_based=False)
    if not np.all(X.data == 1):
        raise SystemExit(f"{path} has values other than 1.")
    return {
        "X_train_indices": X.indices.astype(np.int16),
        "X_train_indptr": X.indptr.astype(np.int32),
        "X_train_shape": np.array(X.shape, dtype=np.int64),
        "y_train": y.astype(np.int8),
    }


def read_skin(path):
    table = np.loadtxt(path, dtype=np.int64, ndmin=2)
    return {
        "X": table[:, :3].astype(np.uint8),
        "y": table[:, 3].astype(np.int8),
        "feature_names": np.array(["B", "G", "R"]),
    }


def build(folder):
    readers = {"w8a": ("libsvm_w8a.npz", read_w8a), "Skin_NonSkin.txt": ("uci_skin_nonskin.npz", read_skin)}
    found = find_files(folder, r"(^|/)(w8a|Skin_NonSkin\.txt)$")
    return {readers[match[2]][0]: readers[match[2]][1](path) for match, path in found}


if __name__ == "__main__":
    raise SystemExit(run(__doc__, build, {"folder": "folder with w8a or Skin_NonSkin.txt"}))
