"""Make three_sources.npz, webkb_course.npz and cora_multiview.npz from MATLAB files of these sets.

python benchmarks/data/multiview_mat.py FOLDER --out DATA

FOLDER has 3Sources.mat, WebKB.mat and Cora.mat, or some of them, from
https://github.com/ChuanbinZhang/Multi-view-datasets (commit 03ead31e). Each file has a cell `X` with one matrix for
each view, samples in rows, and the labels `y` from 1. The script recognizes views by their number of columns. It names
them, makes labels start at 0 and stores smaller types. The arrays are exact.

In the known cora_multiview.npz, `inbound` and `outbound` are the same matrix, and its rows count the links to a paper.
The script keeps both, in the order of the file.

Terms: 3-Sources is for non-commercial research, and the texts belong to their publishers. The others state none.
"""

import numpy as np
import scipy.io
import scipy.sparse as sp
from _common import find_files, run

TOPICS = ["business", "entertainment", "health", "politics", "sport", "tech"]
# file: result, type, columns of each view
FILES = {
    "3Sources.mat": ("three_sources.npz", np.uint8, {"bbc": 3560, "guardian": 3631, "reuters": 3068}),
    "WebKB.mat": ("webkb_course.npz", np.float32, {"view1": 1840, "view2": 3000}),
    "Cora.mat": ("cora_multiview.npz", np.uint8, {"content": 1433, "cites": 2708, "inbound": 2706, "outbound": 2706}),
}


def read_mat(path, dtype, widths):
    """Return the views and the labels of a file."""
    content = scipy.io.loadmat(path)
    tables = [table.toarray() if sp.issparse(table) else table for table in content["X"].ravel()]
    labels = content["y" if "y" in content else "Y"].ravel().astype(np.int64)
    arrays = {}
    for view, width in widths.items():
        place = next((k for k, table in enumerate(tables) if table.shape[1] == width), None)
        if place is None:
            raise SystemExit(f"{path} has no further view of {width} columns for {view!r}.")
        table = tables.pop(place)
        arrays[view] = table.astype(dtype)
        if np.issubdtype(dtype, np.integer) and not np.array_equal(arrays[view], table):
            raise SystemExit(f"The view {view!r} of {path} has values that {np.dtype(dtype)} cannot store.")
    return arrays | {"y": (labels - labels.min()).astype(np.uint8)}


def build(folder, files=None):
    files = FILES if files is None else files
    made = {}
    for match, path in find_files(folder, r"(3Sources|WebKB|Cora)\.mat$"):
        result, dtype, widths = files[match[0]]
        made[result] = read_mat(path, dtype, widths)
    if "three_sources.npz" in made:
        made["three_sources.npz"]["class_names"] = np.array(TOPICS)
    return made


if __name__ == "__main__":
    raise SystemExit(run(__doc__, build, {"folder": "folder with the MATLAB files"}))
