"""Make mixomics_breast_tcga.npz from the R package mixOmics.

python benchmarks/data/breast_tcga.py FOLDER --out DATA

FOLDER has breast.TCGA.rda, from the folder data of https://github.com/mixOmicsTeam/mixOmics (commit d732983). It has
the lists data.train (mirna, mrna, protein, subtype) and data.test (mirna, mrna, subtype), samples in rows. The arrays
are exact. R is not needed.

Terms: GPL 2 or later, as the package; original data: The Cancer Genome Atlas, open-access tier.
"""

import numpy as np
from _common import find_files, run
from _rda import read_rda


def table(value):
    """Return numbers, names of samples and names of columns of an R matrix or data frame."""
    if "dim" in value.attributes:
        rows, columns = (names.data for names in value.attributes["dimnames"].data)
        return value.data.reshape(value.attributes["dim"].data, order="F"), rows, columns
    columns = [np.asarray(column.data, dtype=np.float64) for column in value.data]
    return np.column_stack(columns), value.attributes["row.names"].data, value.attributes["names"].data


def build(folder):
    ((_, path),) = find_files(folder, r"(^|/)breast\.TCGA\.rda$")
    (sets,) = read_rda(path.read_bytes()).values()
    arrays = {}
    for part, views in {"train": ("mirna", "mrna", "protein"), "test": ("mirna", "mrna")}.items():
        data = sets[f"data.{part}"]
        subtype = data["subtype"]
        arrays[f"y_{part}"] = np.array(subtype.attributes["levels"].data)[subtype.data - 1]
        for view in views:
            numbers, samples, columns = table(data[view])
            arrays[f"{view}_{part}"] = np.ascontiguousarray(numbers, dtype=np.float64)
            for name, values in ((f"sample_id_{part}", samples), (f"{view}_features", columns)):
                if arrays.setdefault(name, np.array(values)).tolist() != list(values):
                    raise SystemExit(f"The {name} of {view} differ from those of another table of {path}.")
    return {"mixomics_breast_tcga.npz": arrays}


if __name__ == "__main__":
    raise SystemExit(run(__doc__, build, {"folder": "folder with breast.TCGA.rda"}))
