"""The systems of `streams.py`: each reads a file in its own manner, predicts every row and learns it then."""

import numpy as np
import pyarrow.parquet as pq

from _streams_files import REGRESSION  # isort: skip

CHUNK = 100  # rows that scikit-learn predicts and learns at a time


# -- ours
def our_models(stream):
    import consilience as cs

    ready = {} if stream == "pairs" else {"prepare": "standardize"}
    if stream in REGRESSION:
        ready["prepare_target"] = "standardize"
        return {
            f"PassiveAggressiveRegressor, average={kind!r}": lambda kind=kind: cs.PassiveAggressiveRegressor(
                average=kind, **ready
            )
            for kind in ("recent", True, False)
        }
    kinds = {"PassiveAggressive": (True, "recent"), "OnlinePerceptron": (True,), "OrthogonalPerceptron": (True,)}
    return {
        f"{name}, average={kind!r}": lambda name=name, kind=kind: getattr(cs, name)(average=kind, **ready)
        for name, averages in kinds.items()
        for kind in averages
    }


def run_ours(model, path, stream, limit):
    """Return the measures of progressive validation; the model forgets half of what it learned at a drift."""
    import consilience as cs

    regression = stream in REGRESSION
    measures = ["mae", "r2"] if regression else ["log_loss"]
    options = (
        {} if regression else {"drift": True, "on_drift": "forget", "classes": [-1, 1] if stream == "pairs" else [0, 1]}
    )
    views = None if stream == "pairs" else "prefix"
    result = cs.progressive_validation(model(), path, views=views, limit=limit, measures=measures, **options)
    return {
        name: result.measures[name] for name in (measures if regression else ["error", *measures])
    }, result.n_samples


# -- river
def river_models(stream):
    from river import drift, linear_model, preprocessing

    def scaled(make):
        return (lambda: make()) if stream == "pairs" else (lambda: preprocessing.StandardScaler() | make())

    if stream in REGRESSION:
        return {
            "LinearRegression": scaled(linear_model.LinearRegression), "PARegressor": scaled(linear_model.PARegressor)
        }  # fmt: skip
    models = {
        name: scaled(getattr(linear_model, name)) for name in ("LogisticRegression", "PAClassifier", "Perceptron")
    }
    if stream == "made":
        retrained = scaled(linear_model.LogisticRegression)
        models["LogisticRegression, DriftRetraining"] = lambda: drift.DriftRetrainingClassifier(
            retrained(), drift.binary.DDM()
        )
    return models


def river_rows(path, stream):
    """Yield samples as dicts and their targets, as river takes them; missing values are left out."""
    if stream == "pairs":
        from river.stream import iter_libsvm

        yield from ((x, y > 0) for x, y in iter_libsvm(str(path), target_type=int))
        return
    for batch in pq.ParquetFile(path).iter_batches():
        names = batch.schema.names[:-1]
        columns = [column.to_pylist() for column in batch.columns]
        for *values, y in zip(*columns, strict=True):
            x = dict(zip(names, values, strict=True))
            if stream == "made":
                x = {name: value for name, value in x.items() if value is not None}
            yield x, y if stream in REGRESSION else bool(y)


def run_river(model, path, stream, limit):
    model, truth, given = model(), [], []
    for x, y in river_rows(path, stream):
        if stream in REGRESSION:
            given.append(model.predict_one(x))
        else:
            given.append(model.predict_proba_one(x).get(True, 0.5))
        model.learn_one(x, y)
        truth.append(y)
        if limit and len(truth) == limit:
            break
    return measured(np.array(truth, dtype=float), np.array(given, dtype=float), stream), len(truth)


# -- scikit-learn
def sklearn_models(stream):
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    steps = {"penalty": None, "learning_rate": "pa1", "eta0": 1.0}  # passive-aggressive, PA-I with C = 1
    if stream in REGRESSION:
        return {
            "SGDRegressor": lambda: SGDRegressor(random_state=0),
            "SGDRegressor, PA-I": lambda: SGDRegressor(loss="epsilon_insensitive", random_state=0, **steps),
        }
    return {
        "SGDClassifier, log loss": lambda: SGDClassifier(loss="log_loss", random_state=0),
        "SGDClassifier, PA-I": lambda: SGDClassifier(loss="hinge", random_state=0, **steps),
    }


def sklearn_chunks(path, stream):
    """Yield matrices of CHUNK rows and their targets."""
    if stream == "pairs":
        from sklearn.datasets import load_svmlight_file

        with open(path, "rb") as file:  # a quarter of the file at a time, by its bytes
            size = file.seek(0, 2)
        for k in range(4):
            X, y = load_svmlight_file(
                str(path), n_features=1_664_476, zero_based=False, offset=k * size // 4, length=size // 4 + (k == 3) * 4
            )
            for start in range(0, len(y), CHUNK):
                yield X[start : start + CHUNK], y[start : start + CHUNK] > 0
        return
    for batch in pq.ParquetFile(path).iter_batches():
        X = np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
        for start in range(0, len(X), CHUNK):
            yield X[start : start + CHUNK, :-1], X[start : start + CHUNK, -1]


def run_sklearn(model, path, stream, limit):
    from sklearn.preprocessing import StandardScaler

    model, scaler, truth, given = model(), StandardScaler(), [], []
    regression = stream in REGRESSION
    options = {} if regression else {"classes": [0, 1]}
    for X, y in sklearn_chunks(path, stream):
        scores = np.zeros(len(y))
        if truth:
            ready = X if stream == "pairs" else np.nan_to_num(scaler.transform(X))
            scores = model.predict(ready) if regression else model.decision_function(ready)
        if stream != "pairs":
            X = np.nan_to_num(scaler.partial_fit(X).transform(X))  # missing values are means
        model.partial_fit(X, y, **options)
        truth.append(y)
        given.append(scores if regression else 0.5 * (1 + np.tanh(scores / 2)))
        if limit and sum(map(len, truth)) >= limit:
            break
    return measured(np.concatenate(truth).astype(float), np.concatenate(given), stream), sum(map(len, truth))


# -- measures
def measured(truth, given, stream):
    """Return the measures of predictions that were made before learning, as progressive validation has them."""
    if stream in REGRESSION:
        squares = ((truth - given) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
        return {"mae": float(np.abs(truth - given).mean()), "r2": float(1 - squares)}
    p = np.clip(np.where(truth == 1, given, 1 - given), 1e-12, 1.0)
    return {"error": float(((given > 0.5) != (truth == 1)).mean()), "log_loss": float(-np.log(p).mean())}


SYSTEMS = {
    "consilience": (our_models, run_ours),
    "river": (river_models, run_river),
    "scikit-learn": (sklearn_models, run_sklearn),
}
