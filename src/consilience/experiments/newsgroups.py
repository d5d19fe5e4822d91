"""Fornoni (2009), Figures 4.4 and 4.5: words and word pairs of newsgroups cut into views, for powers p from 1 to 8."""

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from ..online.matrix import MatrixPerceptron, OrthogonalPerceptron
from ..online.perceptron import OnlinePerceptron
from ..views.container import Views
from ._experiment import Cached, Cell, Claim, Experiment, Found, Results, Table, half_width, with_interval
from ._passes import one_pass
from ._tables import load_set

POWERS = tuple(range(1, 9))
VIEWS = (2, 3, 5, 6)
KINDS: dict[str, Any] = {"MMP": MatrixPerceptron, "OMMP": OrthogonalPerceptron}
FIRST = ("comp", "misc", "sci")  # the groups of one class; the others are alt, rec, soc and talk
LIKE = 0.25  # points of error: less is not appreciable


def column_order(arrangement: str, n_columns: int, n_views: int) -> np.ndarray:
    """Return the columns of all views, one view after the other, all of the same width.

    Columns of the file are sorted by the number of posts in which they occur. "cut" gives the first view the most
    frequent ones. "interleaved" deals them out, so that columns at the same position of two views are alike.
    """
    width = n_columns // n_views
    if arrangement == "shuffled":
        return np.random.default_rng(0).permutation(n_columns)[: width * n_views]
    columns = np.arange(width * n_views)
    return columns if arrangement == "cut" else columns.reshape(width, n_views).T.ravel()


@lru_cache(maxsize=1)
def _posts(rows: int | None) -> tuple[Any, np.ndarray]:
    X, groups, _ = load_set("news20_pairs")
    y = np.isin([str(group).split(".")[0] for group in groups], FIRST)
    if rows is not None:
        chosen = np.random.default_rng(0).permutation(len(y))[:rows]
        X, y = X[chosen], y[chosen]
    return X.astype(np.float32), y


@lru_cache(maxsize=1)
def _views(arrangement: str, n_views: int, rows: int | None) -> Views:
    X, _ = _posts(rows)
    parts = np.split(column_order(arrangement, X.shape[1], n_views), n_views)
    return Views({f"view{k + 1}": normalize(X[:, columns]) for k, columns in enumerate(parts)})


def _cells(seeds: int, quick: bool) -> list[Cell]:
    views, rows = ((2, 3), 1000) if quick else (VIEWS, None)
    kinds = [("shuffled", each) for each in views] + [("cut", 2), ("interleaved", 2)]
    return [
        {"columns": columns, "views": n_views, "order": order, "rows": rows}
        for columns, n_views in kinds
        for order in range(seeds)
    ]


def _measure(cell: Cell, cached: Cached) -> Found:
    whole, y = _posts(cell["rows"])
    order = np.random.default_rng(cell["order"]).permutation(len(y))
    X, y = _views(cell["columns"], cell["views"], cell["rows"])[order], y[order]
    found: Found = {
        name: [one_pass(kind(p=p, fit_intercept=False), X, y) for p in POWERS] for name, kind in KINDS.items()
    }
    alone = [one_pass(OnlinePerceptron(fit_intercept=False), X[[name]], y) for name in X.names]
    full = one_pass(OnlinePerceptron(fit_intercept=False), normalize(whole)[order], y)
    return found | {"alone": alone, "perceptron": full}


def _tables(results: Results) -> list[Table]:
    by_power, gains = [], []
    for n_views in results.levels("views"):
        given = {"columns": "shuffled", "views": n_views}
        alone = results.values("alone", **given).mean(axis=0)
        for name in KINDS:
            errors = results.values(name, **given).mean(axis=0)
            first = [str(n_views), results.text("perceptron", **given), f"{alone.min():.2f} to {alone.max():.2f}"]
            by_power.append([*(first if name == "MMP" else [""] * 3), name, *(f"{error:.2f}" for error in errors)])
        best = [_best(results, name, n_views) for name in KINDS]
        gap = _gaps(results, "shuffled", n_views)
        gains.append([
            str(n_views),
            *(f"{with_interval(gain, sign=True)} (p = {p})" for p, gain in best),
            with_interval(gap.mean(axis=1), sign=True),
            f"{np.abs(gap.mean(axis=0)).max():.2f}",
        ])  # fmt: skip
    orders = []
    for columns in results.levels("columns"):
        gap = _gaps(results, columns, 2)
        alone = results.values("alone", columns=columns, views=2).mean(axis=0)
        means = [f"{results.values(name, columns=columns, views=2).mean(axis=0).min():.2f}" for name in KINDS]
        each = [f"{error:.2f}" for error in alone]
        orders.append([columns, *each, *means, with_interval(gap.mean(axis=1), sign=True)])
    heads = ["views", "perceptron", "views alone", "", *(f"p = {p}" for p in POWERS)]
    best_heads = ["MMP gains over the perceptron", "OMMP gains over the perceptron"]
    between = ["MMP less OMMP, mean over p", "largest mean difference of any p"]
    return [
        Table("Shuffled columns: mistakes of one pass in percent, mean over orders", heads, by_power),
        Table("Shuffled columns: gain at the best p, chosen on the same runs", ["views", *best_heads, *between], gains),
        Table(
            "Two views by the order of the columns: mistakes in percent at the best p",
            ["columns", "view 1 alone", "view 2 alone", "MMP", "OMMP", "MMP less OMMP, mean over p"],
            orders,
        ),
    ]


def _best(results: Results, kind: str, n_views: int) -> tuple[int, np.ndarray]:
    """Return the best power and the gain over the perceptron in each order of the rows."""
    errors = results.values(kind, columns="shuffled", views=n_views)
    best = int(errors.mean(axis=0).argmin())
    return POWERS[best], results.values("perceptron", columns="shuffled", views=n_views) - errors[:, best]


def _gaps(results: Results, columns: str, n_views: int) -> np.ndarray:
    """Return the error of MMP less that of OMMP, by order of the rows and power."""
    given = {"columns": columns, "views": n_views}
    return results.values("MMP", **given) - results.values("OMMP", **given)


def _claims(results: Results) -> list[Claim]:
    views = results.levels("views")
    gaps = {each: np.abs(_gaps(results, "shuffled", each).mean(axis=0)).max() for each in views}
    gains = {(each, kind): _best(results, kind, each)[1] for each in views for kind in KINDS}
    dealt = _gaps(results, "interleaved", 2).mean(axis=1)
    claims = [
        Claim(
            f"MMP and OMMP cannot be told apart on {each} views: their mean errors differ by less than {LIKE} points.",
            bool(gaps[each] < LIKE),
            f"by at most {gaps[each]:.2f} points for any p",
            "Columns at the same position of two views are not orthogonal in these samples, even if they are sparse.",
        )
        for each in views
    ]
    most = max(gains, key=lambda key: float(gains[key].mean()))
    return [
        *claims,
        Claim(
            f"With the best p, neither gains {LIKE} points over the perceptron, for any number of views.",
            bool(gains[most].mean() < LIKE),
            f"the largest gain is {with_interval(gains[most], sign=True)} points, of {most[1]} on {most[0]} views",
            "Views of unit length count the same, also where a post has few words in one of them.",
        ),
        Claim(
            "Section 4.3 supposes that sparsity makes both alike. Then they agree also on interleaved columns.",
            bool(abs(dealt.mean()) + half_width(dealt) < LIKE),
            f"with interleaved columns MMP makes {with_interval(dealt, sign=True)} points more mistakes than OMMP",
            "MMP multiplies columns at the same position of two views. Sparsity alone does not make them orthogonal: "
            "columns of similar frequency often occur in the same post.",
        ),
    ]


NEWSGROUPS = Experiment(
    name="newsgroups",
    title="Matrix perceptrons on words and word pairs of newsgroups",
    paper="Fornoni (2009)",
    shown_in="Figures 4.4, 4.5",
    data="news20_pairs",
    protocol=(
        "18,846 posts, 1,664,476 columns for the presence of words and word pairs. Columns are shuffled by a fixed "
        "permutation and cut into 2, 3, 5 or 6 views of the same width. Rows of each view have length 1. Linear "
        "kernel, p = 1, 2, .., 8, five random orders of the rows, one pass, no intercept. The error is the share of "
        "mistakes on the way. The perceptron runs on each view alone, and on the full vector of length 1. One more "
        "table compares three orders of the columns on two views. *Cut* means sorted by frequency, so that the first "
        "view has the frequent columns. *Interleaved* deals the sorted columns out, so that columns of similar "
        f"frequency meet. A difference below {LIKE} points is not appreciable; this threshold is ours."
    ),
    cells=_cells,
    measure=_measure,
    tables=_tables,
    claims=_claims,
    seeds=5,
    minutes=2,
    differences=(
        "The thesis has news20.binary of LIBSVM, with 19,996 posts and 1,355,191 columns. Here are the posts of 20 "
        "Newsgroups by date, with columns and classes of our own: comp, misc and sci against alt, rec, soc and talk.",
        "The thesis does not state how it cut the columns into views. As the last table shows, this matters.",
        "The thesis shows its results in figures alone, so there are no published numbers in the tables.",
    ),
)
EXPERIMENTS = (NEWSGROUPS,)
