"""Data sets of benchmarks/consensus.py: what is drawn for training and testing, and the forms that the rivals get."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold

import consilience as cs
from consilience import datasets

SIZES = (50, 100, 200, 400, 800)
TEST = 1000  # the largest test part
LEAST = 3  # training samples of each class, one for each fold
FOLDS = 3
ALL, MEAN = "all columns", "mean kernel"  # what stands for a view


@dataclass
class Source:
    """A set with at least two views: counts get a second preparation, groups are never divided."""

    X: cs.Views
    y: np.ndarray
    sizes: tuple[int, ...]
    counts: bool = False
    groups: np.ndarray | None = None

    @property
    def classes(self):
        """Tell whether the target is a class."""
        return self.y.dtype.kind in "iuOUS"


def _classes(fetch, sizes=SIZES, **options):
    def load():
        X, y = fetch(return_X_y=True)
        return Source(X, np.unique(y, return_inverse=True)[1], sizes, **options)

    return load


def _eth80():
    found = datasets.fetch_eth80()
    codes = np.unique(found.target, return_inverse=True)[1]
    return Source(found.data, codes, SIZES, counts=True, groups=np.asarray(found.groups))


def _nutrimouse(target):
    def load():
        X, y = datasets.fetch_nutrimouse(target=target, return_X_y=True)
        return Source(X, np.unique(y, return_inverse=True)[1], (20, 30))

    return load


def _breast_tcga():
    X, y = datasets.fetch_breast_tcga(return_X_y=True)
    complete = np.flatnonzero(X.present("protein"))
    return Source(X[complete], np.unique(y[complete], return_inverse=True)[1], (50, 100))


def _spectrometer():
    X, y = datasets.fetch_spectrometer(return_X_y=True)
    basic = y // 10  # one of ten basic classes; those with fewer than ten samples are left out
    kept = np.flatnonzero(np.isin(basic, [c for c in np.unique(basic) if np.sum(basic == c) >= 10]))
    return Source(X[kept], np.unique(basic[kept], return_inverse=True)[1], (50, 100, 200, 400))


def _sarcos(torque):
    def load():
        X, Y = datasets.fetch_sarcos(return_X_y=True)
        return Source(X, Y[:, torque - 1].astype(np.float64), SIZES)

    return load


def _protein(name):
    def load():
        found = datasets.fetch_breast_tcga()
        rows = np.flatnonzero(found.data.present("protein"))
        column = list(found.feature_names["protein"]).index(name)
        return Source(found.data[rows][["mrna", "mirna"]], found.data["protein"][rows, column], (50, 100))

    return load


def _made():
    X, y = datasets.make_regression_views(1500, informative=2, noise=1, target_noise=0.3, random_state=0)
    return Source(X, y, SIZES[:4])


SETS = {
    "nutrimouse_diet": _nutrimouse("diet"),
    "nutrimouse_genotype": _nutrimouse("genotype"),
    "breast_tcga": _breast_tcga,
    "three_sources": _classes(datasets.fetch_three_sources, (50, 100), counts=True),
    "breast_cancer": _classes(datasets.load_breast_cancer_views, SIZES[:4]),
    "spectrometer": _spectrometer,
    "pam50": _classes(datasets.fetch_tcga_brca, SIZES[:4]),
    "webkb": _classes(datasets.fetch_webkb),
    "digits": _classes(datasets.load_digits_views),
    "mfeat": _classes(datasets.fetch_mfeat),
    "uwave": _classes(datasets.fetch_uwave),
    "cora": _classes(datasets.fetch_cora),
    "eth80": _eth80,
    "flower17": _classes(datasets.fetch_flower17, SIZES[1:], counts=True),
    "sarcos_torque1": _sarcos(1),
    "sarcos_torque4": _sarcos(4),
    "protein_ER": _protein("ER-alpha"),
    "protein_HER2": _protein("HER2"),
    "made_regression": _made,
}


# -- draws
def allotted(counts, n, least):
    """Return how many of n samples each class gets: in proportion to its size, but not fewer than `least`."""
    share = np.maximum(n * counts / counts.sum(), least)
    found = np.floor(share).astype(int)
    while found.sum() < n:
        found[np.argmax(np.where(found < counts, share - found, -np.inf))] += 1
    while found.sum() > n:
        found[np.argmax(np.where(found > least, found - share, -np.inf))] -= 1
    return found


def draw(source, n, seed):
    """Return training and test rows; with groups, the test part has groups of its own."""
    rng = np.random.default_rng([seed, n])
    pool = np.arange(len(source.y))
    test_pool = None
    if source.groups is not None:  # 7 of 10 groups of each class are for training
        train_groups = []
        for c in np.unique(source.y):
            own = rng.permutation(np.unique(source.groups[source.y == c]))
            train_groups.extend(own[: round(0.7 * len(own))])
        inside = np.isin(source.groups, train_groups)
        pool, test_pool = np.flatnonzero(inside), np.flatnonzero(~inside)
    if source.classes:
        labels = source.y[pool]
        counts = np.bincount(labels)
        own = zip(range(len(counts)), allotted(counts, n, LEAST), strict=True)
        train = np.concatenate([rng.choice(pool[labels == c], k, replace=False) for c, k in own])
    else:
        train = rng.choice(pool, n, replace=False)
    rest = np.setdiff1d(pool, train) if test_pool is None else test_pool
    return rng.permutation(train), rng.permutation(rest)[:TEST]


def without_some(X, share, seed):
    """Return views that are missing at random in a share of the cells; every sample keeps at least one."""
    if not share:
        return X
    rng = np.random.default_rng([seed, round(100 * share), 7])
    mask = rng.random((len(X), len(X.names))) >= share
    bare = np.flatnonzero(~mask.any(axis=1))
    mask[bare, rng.integers(len(X.names), size=len(bare))] = True
    return cs.Views(X, mask=mask)


# -- one cell of the comparison
@dataclass
class Cell:
    """One draw of a set. Rows are counted over the training samples first, then the test samples."""

    source: Source
    size: int
    seed: int
    missing: float = 0.0
    _made: dict = field(default_factory=dict)

    def __post_init__(self):
        train, test = draw(self.source, self.size, self.seed)
        rows = np.concatenate([train, test])
        self.n, self.all = len(train), len(rows)
        self.X, self.y = without_some(self.source.X[rows], self.missing, self.seed), self.source.y[rows]
        self.classes = self.source.classes
        self.n_classes = int(self.source.y.max()) + 1 if self.classes else 0
        self.groups = None if self.source.groups is None else self.source.groups[train]
        self.train, self.test = np.arange(self.n), np.arange(self.n, self.all)
        if not self.classes:  # every rival gets a standardized target
            self.y = (self.y - self.y[: self.n].mean()) / self.y[: self.n].std()

    @cached_property
    def folds(self):
        """Return the inner folds of the training part, the same for every rival."""
        y = self.y[: self.n]
        options = {"n_splits": FOLDS, "shuffle": True, "random_state": self.seed}
        if not self.classes:
            return list(KFold(**options).split(y))
        if self.groups is None:
            return list(StratifiedKFold(**options).split(y, y))
        return [pair for pair in StratifiedGroupKFold(**options).split(y, y, self.groups) if len(pair[1])]

    @property
    def sparse(self):
        """Tell whether views are sparse."""
        return any(self.X.kind(name) == "sparse" for name in self.X.names)

    @property
    def preparations(self):
        """Return the preparations that rivals choose from by their inner score."""
        every = ("unit", "unit roots") if self.sparse else ("standard", "roots")
        return every if self.source.counts else every[:1]

    def prepared(self, name, preparation):
        """Return a view as the rivals with kernels get it; the scales are those of the training samples."""
        block = self.X[name]
        if preparation.startswith("unit"):  # rows of unit length, the custom for texts
            block = sp.csr_array(block, dtype=np.float64)
            block = block.sqrt() if preparation == "unit roots" else block
            length = np.sqrt(np.asarray(block.multiply(block).sum(axis=1)).ravel())
            return sp.diags_array(1 / np.where(length > 0, length, 1)) @ block
        block = np.asarray(block, dtype=np.float64)
        if preparation == "roots":  # square roots of shares, the custom for histograms
            return np.sqrt(block / np.maximum(block.sum(axis=1, keepdims=True), 1e-12))
        deviation = block[: self.n].std(axis=0)
        return (block - block[: self.n].mean(axis=0)) / np.where(deviation > 1e-12, deviation, 1)

    def features(self, name, preparation):
        """Return at most n + 1 columns with the same products among training samples and with test samples.

        Wide views are rotated into the span of the training samples. A last column has the length of what lies outside
        the span, 0 for training samples, so that distances between training and test samples are exact as well.
        """
        key = "features", name, preparation
        if key not in self._made:
            self._made[key] = self._features(name, preparation)
        return self._made[key]

    def _features(self, name, preparation):
        if name == ALL:
            parts = [self.prepared(each, preparation) for each in self.X.names]
            Z = sp.hstack(parts, format="csr") if self.sparse else np.hstack(parts)
        else:
            Z = self.prepared(name, preparation)
        if Z.shape[1] <= self.n:
            return Z.toarray() if sp.issparse(Z) else Z
        products = Z @ Z[: self.n].T
        products = products.toarray() if sp.issparse(products) else products
        lengths = np.asarray(Z.multiply(Z).sum(axis=1)).ravel() if sp.issparse(Z) else np.einsum("ij,ij->i", Z, Z)
        values, vectors = np.linalg.eigh(products[: self.n])
        kept = values > 1e-10 * values[-1]
        rotated = products @ (vectors[:, kept] / np.sqrt(values[kept]))
        outside = np.sqrt(np.maximum(lengths - np.einsum("ij,ij->i", rotated, rotated), 0))
        outside[: self.n] = 0
        return np.column_stack([rotated, outside])

    def width(self, name, preparation):
        """Return half the mean squared distance of training samples: with standardized columns, their number."""
        Z = self.features(name, preparation)[: self.n]
        return max(float(np.sum(Z.var(axis=0))), 1e-12)

    def gram(self, name, preparation, gamma):
        """Return the kernel of all samples with the training samples: linear, Gaussian, or a mean over the views."""
        key = "gram", name, preparation, gamma
        if key not in self._made:
            if name == MEAN:
                grams = [self.gram(each, preparation, gamma) for each in self.X.names]
                self._made[key] = sum(grams) / len(grams)
            else:
                Z = self.features(name, preparation)
                K = Z @ Z[: self.n].T
                if gamma == "linear":
                    self._made[key] = K / max(np.trace(K[: self.n]) / self.n, 1e-12)
                else:
                    squares = np.einsum("ij,ij->i", Z, Z)
                    distances = np.maximum(squares[:, None] - 2 * K + squares[: self.n], 0)
                    self._made[key] = np.exp(-gamma / self.width(name, preparation) * distances)
        return self._made[key]

    @cached_property
    def table(self):
        """Return the columns of all views side by side, as given; of sparse views the 300 that most samples have."""
        blocks = []
        for name in self.X.names:
            block, there = self.X[name], self.X.present(name)
            if sp.issparse(block):
                block = sp.csr_array(block)
                often = np.argsort(-(block[: self.n] != 0).sum(axis=0), kind="stable")[:300]
                block = block[:, np.sort(often)].toarray()
            blocks.append(np.where(there[:, None], block, np.nan))
        return np.hstack(blocks).astype(np.float32)
