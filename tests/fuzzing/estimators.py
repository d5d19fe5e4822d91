"""Random estimators on random data: predictions are finite, weights count samples, chunks do not matter."""

import pickle

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

import cases
import consilience as cs
from consilience import Views
from consilience.kernels import RBF, Polynomial
from consilience.solvers.certificates import STATUSES
from fuzzing.properties import Refused, attempt, describe, show, take, take_both
from strategies import (
    chance,
    draw_gram,
    draw_labels,
    draw_stream,
    draw_strings,
    draw_targets,
    draw_views,
    draw_weights,
    magnitude,
    pick,
)

# -- estimators: what a parameter is drawn from. A list: one of it. A pair: a power of ten between the exponents. A
# function: of the generator and the number of views. An estimator takes the parameters of its signature.
METRICS = ["learned", "block_sparse", "covariance", "diagonal"]
SQUARE = Polynomial(degree=2, constant=1.0)
HOSTILE = {
    "alpha": (-5, 2), "metric_penalty": (-2, 2), "C": (-3, 3), "metric": METRICS,
    "alphas": lambda rng, m: [magnitude(rng, -5, 1) for _ in range(rng.integers(1, 3))],
    "metric_penalties": lambda rng, m: [magnitude(rng, -2, 2)],
    "agreement_penalty": lambda rng, m: pick(rng, [0.0, magnitude(rng)]),
    "agreement_penalties": lambda rng, m: pick(rng, [[0.0], [0.0, magnitude(rng)]]),
    "graph_penalty": lambda rng, m: pick(rng, [0.0, 0.0, magnitude(rng)]),
    "graph": ["kernel", "kernel", "kernel_normalized", "knn"],
    "view_weights": lambda rng, m: pick(rng, [*["uniform"] * 6, *[rng.normal(size=m).tolist()] * 3, "learned"]),
    "n_components": [None, None, None, 2, 0.5], "cv": [None, None, 2, 3], "p": [1.0, 1.5, 2.0, 2.0, float("inf")],
    "shared_metric": [True, *[False] * 9], "solver": ["exact", "exact", "exact", "alternating"],
    "shared_weights": [False, *[True] * 4], "combine": ["sum", "sum", "sum", "product", SQUARE],
    "fit_intercept": [True, *[False] * 4], "max_iter": [6, 20], "n_restarts": [1], "random_state": [0],
    "CoRegularizedSVC": {"class_vectors": ["ovr", "ovr", "simplex"]},
    "MaxMarginClassifier": {"class_vectors": ["simplex", "simplex", "indicator", "centered_means"], "tol": [1e-3, 1e-8],
                            "max_iter": [100]},
    "MaxMarginRegressor": {"output_kernel": lambda rng, m: RBF(magnitude(rng, -2, 1)), "tol": [1e-3, 1e-8],
                           "max_iter": [100]},
}  # fmt: skip
# for weights that count samples: solved closely, by terms that repeated samples do not change
COUNTED = {
    "alpha": lambda rng, m: magnitude(rng, -3, 0, extreme=0), "metric": METRICS, "p": [1.0, 1.5, 2.0],
    "alphas": lambda rng, m: [magnitude(rng, -3, 0, extreme=0)],
    "agreement_penalty": [0.0, 0.01, 0.3], "agreement_penalties": [[0.0], [0.01], [0.3]],
    "graph_penalty": [0.0, 0.01], "graph": ["kernel", "kernel_normalized"],
    "view_weights": lambda rng, m: pick(rng, ["uniform", "uniform", rng.uniform(0.2, 1, size=m).tolist()]),
    "metric_penalty": lambda rng, m: magnitude(rng, -1, 1, extreme=0),
    "C": lambda rng, m: magnitude(rng, -2, 1, extreme=0), "combine": ["sum", "sum", SQUARE],
    "shared_weights": [False, True, True], "fit_intercept": [True, *[False] * 4], "tol": [1e-12], "max_iter": [5000],
    "CoRegularizedSVC": {"class_vectors": ["ovr", "simplex"]},
    "MaxMarginClassifier": {"class_vectors": ["simplex", "indicator"]},
    "MaxMarginRegressor": {"output_kernel": [RBF(0.5)]},
}  # fmt: skip
STREAMED = {
    "kernel": ["linear", RBF(0.3), RBF(0.05), SQUARE], "average": [False, True, "with_last", "voted"],
    "margin": [0.0, 0.0, 0.5], "eta0": [1.0, 1.0, 0.3], "budget": [None, None, 3, 8],
    "C": lambda rng, m: magnitude(rng, -2, 1, extreme=0),
    "fit_intercept": [False, True], "prior_norms": [None, 0.1, "learned"], "p": [1.0, 2.0, 3.0],
    "threshold": [0.0, 0.1, 0.5],
    "unequal": ["pad", "repeat"],
    "OnlinePerceptron": {"p": [2, 3]},
    "PassiveAggressive": {"variant": ["PA", "PA-I", "PA-II"]},
    "Projectron": {"variant": ["projectron", "projectron++"], "average": [False, True, "with_last"]},
    "OrthogonalPerceptron": {"variant": ["perceptron", "perceptron", "passive-aggressive"]},
    "VectorPerceptron": {"margin": [1.0]},
    "MultiCueClassifier": {"estimator": [None, cs.OnlinePerceptron()], "average": [False, True]},
}  # fmt: skip
FUSED = [RidgeClassifier(), GaussianNB(), LogisticRegression(max_iter=20), Ridge(), Ridge(1e-4),
         DecisionTreeRegressor(max_depth=2)]  # fmt: skip
BATCH = [cls for cls in cases.all_learners() if not hasattr(cls, "learn_one")]
ONLINE = [cls for cls in cases.all_learners() if hasattr(cls, "learn_one")]
FUSIONS = (cs.EarlyFusion, cs.LateFusion)


def draw_estimator(rng, cls, m, table):
    """Return an estimator of a class, with parameters drawn from a table and from what it has for the class."""
    table = {"estimator": FUSED} if cls in FUSIONS else {**table, **table.get(cls.__name__, {})}
    drawn = {}
    for name in sorted(table.keys() & set(cls._get_param_names())):
        of = table[name]
        drawn[name] = of(rng, m) if callable(of) else magnitude(rng, *of) if isinstance(of, tuple) else pick(rng, of)
    return cls(**drawn)


# -- batch estimators on hostile data
def fuzz_batch(rng):
    """Fit any batch estimator on any data: it predicts finite numbers, or refuses and stays as it was."""
    cls = pick(rng, [*BATCH, *FUSIONS])
    fusion = cls in FUSIONS
    n = int(rng.integers(1, 4)) if chance(rng, 0.08) else int(rng.integers(4, 25))
    kinds = ["dense", "dense", "sparse"] if fusion else ["dense", "dense", "dense", "sparse", "strings", "gram"]
    data, kernels, grams, mask = draw_views(rng, n + 4, kinds)
    for name in data if chance(rng, 0.5) else ():  # one row of new data is far away
        if isinstance(data[name], np.ndarray) and name not in grams:
            with np.errstate(over="ignore"):
                data[name][n + 3] *= data[name].dtype.type(magnitude(rng, 1, 8, extreme=0.2))
    model = draw_estimator(rng, cls, len(data), HOSTILE)
    model.set_params(**({} if fusion else {"kernel": kernels}))
    y = draw_labels(rng, n) if is_classifier(model) else draw_targets(rng, n)
    weights = draw_weights(rng, n)

    describe(lambda: f"{show(model)}.fit({show(data)}, {show(y)}, {show(weights)}) mask={mask is not None} n={n}")
    before = frozen(data, y, weights)
    X = take(lambda: Views(data, mask=mask, precomputed=grams or None))
    train, new = X[:n], X[n:]
    _, sentence = attempt(lambda: model.fit(train, y, weights), foreign=fusion)
    assert frozen(data, y, weights) == before, "fit changed its input"
    if sentence:
        check_refused_refit(rng, model, train, y, weights, fusion)
        raise Refused(sentence)
    for rows in (train, new):
        check_predictions(model, rows, fusion)
    check_certificate(model)
    assert frozen(data, y, weights) == before, "predict changed its input"


def frozen(data, y, weights):
    """Return the bytes of what was given, to compare them with later ones."""
    given = (*data.values(), y, weights)
    return pickle.dumps([[value.data, value.indices, value.indptr] if sp.issparse(value) else value for value in given])


def check_predictions(model, X, foreign=False):
    """Check that predictions and scores are finite, or refused in a sentence."""
    predicted, sentence = attempt(lambda: model.predict(X), foreign=foreign)
    if is_classifier(model):
        if sentence is None:
            assert len(predicted) == len(X), "a prediction for each row"
            assert np.isin(predicted, model.classes_).all(), "predictions are not classes"
        if hasattr(model, "decision_function"):
            scores, _ = attempt(lambda: model.decision_function(X), foreign=foreign)
            assert scores is None or np.isfinite(scores).all(), "scores are not finite"
    elif sentence is None:
        assert np.isfinite(np.asarray(predicted, dtype=np.float64)).all(), "predictions are not finite"


def check_certificate(model):
    """Check that a certificate has a known status and a gap that is None or finite and not negative."""
    certificate, sentence = attempt(model.certificate)
    assert sentence is None, f"certificate refused ({sentence})"
    assert certificate.status in STATUSES, f"status {certificate.status!r}"
    gap = certificate.gap
    assert gap is None or (np.isfinite(gap) and gap >= 0), f"gap {gap!r}, status {certificate.status}"
    attempt(lambda: str(certificate))


def check_refused_refit(rng, model, X, y, weights, foreign):
    """Check that a refused fit leaves a fitted model with exactly the predictions it had."""
    n = 8
    make = {"objects": lambda: draw_strings(rng, n), "gram": lambda: draw_gram(rng, n, hostile=False)}
    good = {name: make.get(X.kind(name), lambda: np.abs(rng.normal(size=(n, 2))))() for name in X.names}
    good = Views(good, precomputed=[name for name in X.names if X.kind(name) == "gram"] or None)
    fitted = clone(model)
    try:
        before = fitted.fit(good, np.arange(n) % 2 if is_classifier(model) else rng.normal(size=n)).predict(good)
    except Exception:
        return  # the parameters are refused for all data
    _, sentence = attempt(lambda: fitted.fit(X, y, weights), foreign=foreign)
    if sentence:
        after, lost = attempt(lambda: fitted.predict(good), doing="in predict after a refused refit")
        assert lost is None, f"after a refused refit predict says {lost!r}"
        assert np.array_equal(before, after), "a refused refit changed predictions"


# -- weights that count samples
def fuzz_weights(rng):
    """Fit with whole weights, and fit with each row given that often: both predict the same."""
    n = int(rng.integers(3, 13))
    data, kernels, _, mask = draw_views(rng, n, ["dense", "dense", "sparse", "strings"], hostile=False)
    # a row that stands twice is left out once only, so a consensus gives it other held-out predictions
    held_out = (cs.ConsensusClassifier, cs.ConsensusRegressor, cs.BandedRidgeCV)
    cls = pick(rng, [cls for cls in BATCH if cls not in (*FUSIONS, *held_out)])
    model = draw_estimator(rng, cls, len(data), COUNTED).set_params(kernel=kernels)
    regression = not is_classifier(model)
    if cls is cs.MaxMarginRegressor:  # outputs that repeat, so that the candidates stay the same
        y, method = np.arange(n) % 3 * 1.0, "candidate_scores"
    elif regression:
        y, method = rng.normal(size=(n, 2)) if chance(rng, 0.3) else rng.normal(size=n), "predict"
        y[rng.random(n) < pick(rng, [0.0, 0.0, 0.3])] = np.nan
    else:
        y, method = np.arange(n) % int(rng.integers(2, 4)), "decision_function"
    weights = rng.integers(1, 4, size=n)
    weights[rng.random(n) < pick(rng, [0.0, 0.2])] = 0
    rows = np.repeat(np.arange(n), weights)

    there = None if mask is None else mask.astype(int).tolist()
    describe(lambda: f"{show(model)} on {show(data)} mask={there} y={y.tolist()} weights={weights.tolist()}")
    X = Views(data, mask=mask)
    if method != "predict" and len(np.unique(y[weights > 0])) < len(np.unique(y)):
        raise Refused("a class has no weight")
    if any(X.present(v).any() and not X.present(v)[weights > 0].any() for v in X.names):
        raise Refused("a view has no weight")
    counted, given = take_both(
        lambda: clone(model).fit(X, y, weights.astype(float)), lambda: clone(model).fit(X[rows], y[rows])
    )
    statuses = {counted.certificate().status, given.certificate().status}
    if statuses - {"exact", "converged"}:
        raise Refused(f"status {statuses}")
    shown = X[np.flatnonzero(weights > 0)]
    one, two = take_both(lambda: getattr(counted, method)(shown), lambda: getattr(given, method)(shown))
    limit = 1e-6 if counted.certificate().status == "exact" else 1e-4
    if getattr(counted, "fit_intercept", False):  # several intercepts may be optimal
        one, two = one - one.mean(axis=0), two - two.mean(axis=0)
        objectives = [model.certificate().objective for model in (counted, given)]
        assert np.isclose(*objectives, rtol=limit), f"weight 2 is not twice the row: objectives {objectives}"
    difference = np.abs(one - two).max() / max(np.abs(two).max(), 1e-3)
    assert difference <= limit, f"weight 2 is not twice the row, by {difference:.2g}"


# -- streams in chunks
def fuzz_chunks(rng):
    """Learn a stream at once and in pieces of random sizes: the same mistakes, updates and scores."""
    n = int(rng.integers(2, 41))
    X, y = draw_stream(rng, n)
    model = draw_estimator(rng, pick(rng, ONLINE), len(X.names), STREAMED)
    # vectors of classes are between all of them, so that they must be given at first
    classes = np.unique(y) if isinstance(model, cs.VectorPerceptron) or chance(rng, 0.3) else None
    regresses = is_regressor(model)
    if regresses:
        y, classes = np.unique(y, return_inverse=True)[1] + rng.normal(size=n), None
    sizes = []
    while sum(sizes) < n:
        sizes.append(min(1 if chance(rng, 0.4) else int(rng.integers(1, 12)), n - sum(sizes)))
    single = chance(rng, 0.5)  # pieces of one row by learn_one

    describe(lambda: f"{show(model)} on {show(X)} y={y.tolist()} {sizes=} learn_one={single} {classes=}")

    def counts(learned):
        shared = learned.n_updates_, learned.n_samples_seen_
        return shared if regresses else (learned.n_mistakes_, *shared, learned.classes_.tolist())

    def scores(learned, data):
        return learned.predict(data) if regresses else learned.decision_function(data)

    once = take(lambda: clone(model).partial_fit(X, y, classes=classes))
    parts, no = attempt(lambda: learn_pieces(clone(model), X, y, classes, sizes, single))
    assert no is None, f"learned at once, but refused in pieces ({no})"
    same = counts(once) == counts(parts)
    if not same and not regresses and counts(once)[1:] == counts(parts)[1:]:
        # scores agree up to rounding, and so a score of 0 may count as a mistake or not
        same = abs(once.n_mistakes_ - parts.n_mistakes_) <= n_ties(model, X, y)
    assert same, f"mistakes, updates, samples, classes are {counts(once)} and {counts(parts)}"
    shown = X[[v for v in X.names if X.present(v).any()]]
    one, two = take_both(lambda: scores(once, shown), lambda: scores(parts, shown))
    assert np.isfinite(one).all(), "scores are not finite"
    limit = 1e-4 if any(X.block(v) is not None and X.block(v).dtype == np.float32 for v in X.names) else 1e-8
    difference = np.abs(one - two).max() / max(np.abs(one).max(), 1.0)
    assert difference <= limit, f"scores differ by {difference:.2g}"


def n_ties(model, X, y):
    """Return how many samples have, up to rounding, the same score for two classes when they are learned."""
    learned, found = clone(model).set_params(average=False), 0
    for i in range(len(y)):
        row = X[[i]]
        if i > 0:
            scores, no = attempt(lambda row=row: np.ravel(learned.decision_function(row)))
            highest = [] if no else np.sort(scores)[-2:] if len(scores) > 1 else [0.0, *scores]
            found += len(highest) == 2 and abs(highest[1] - highest[0]) <= 1e-12
        learned.partial_fit(row, y[[i]])
    return found


def learn_pieces(model, X, y, classes, sizes, single):
    """Learn a stream in pieces, as Views, as dicts without the views that are missing, or one row at a time."""
    start = 0
    for number, size in enumerate(sizes):
        rows = slice(start, start + size)
        there = [v for v in X.names if X.present(v)[rows].any()]
        start += size
        if size == 1 and single and (number or classes is None):
            row = {v: X[v][rows] if sp.issparse(X[v]) else X[v][rows][0] for v in there}
            model.learn_one(row, y[rows][0])
        else:
            piece = X[rows][there] if number % 2 else X[rows]
            model.partial_fit(piece, y[rows], **({} if number else {"classes": classes}))
    return model
