"""Model files of calibrated classifiers and of scikit-learn's trees around views: the same back, damage refused."""

import hashlib
import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

import consilience as cs
from consilience.io._class_names import schema_nodes
from consilience.io._states import BadState, check_state

X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
X, y = X[:150], np.array(["malignant", "benign"])[y[:150]]
SIZE = X["worst"][:, 0]


def scaled(estimator):
    return make_pipeline(cs.PerView(StandardScaler()), estimator)


MODELS = {
    "calibrated by a sigmoid, a model per fold": CalibratedClassifierCV(cs.CoRegularizedRidgeClassifier(), cv=3),
    "calibrated by isotonic regression": CalibratedClassifierCV(
        scaled(cs.CoRegularizedSVC()), method="isotonic", ensemble=False, cv=StratifiedKFold(3)
    ),
    "calibrated by a temperature": CalibratedClassifierCV(scaled(cs.MaxMarginClassifier()), method="temperature", cv=2),
    "calibrated, frozen": CalibratedClassifierCV(FrozenEstimator(cs.CoRegularizedRidgeClassifier().fit(X, y))),
    "forest": cs.EarlyFusion(RandomForestClassifier(5, random_state=0)),
    "extra trees": cs.LateFusion(ExtraTreesClassifier(3, random_state=0)),
    "one tree": cs.EarlyFusion(DecisionTreeClassifier(random_state=0)),
    "boosting": cs.EarlyFusion(HistGradientBoostingClassifier(max_iter=5)),
    "forest for regression": cs.EarlyFusion(RandomForestRegressor(5, random_state=0)),
    "boosting for regression": TransformedTargetRegressor(
        scaled(cs.EarlyFusion(HistGradientBoostingRegressor(max_iter=5))), transformer=StandardScaler()
    ),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.cons"


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_comes_back(name, path):
    model = MODELS[name]
    model.fit(X, y if is_classifier(model) else SIZE)
    cs.save(model, path)
    again = cs.load(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    if is_classifier(model):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.predict_proba(X).shape == (150, 2)
        assert again.classes_.tolist() == ["benign", "malignant"]


def test_estimators_inside_a_calibrated_classifier_are_validated(path):
    model = CalibratedClassifierCV(cs.KernelPerceptron(), cv=2).fit(X, y)
    model.calibrated_classifiers_[1].estimator._machine.alive = np.ones(10**3, dtype=bool)
    cs.save(model, path)
    with pytest.raises(ValueError, match="is damaged: "):
        cs.load(path)


# -- trees that no fit makes
def with_nodes(tree, **fields):
    """Change nodes of a tree of a forest."""
    state = tree.__getstate__()
    nodes = state["nodes"].copy()
    for name, value in fields.items():
        nodes[name][0] = value
    tree.__setstate__({**state, "nodes": nodes})


BROKEN_NODES = {
    "a child beyond the last node": {"left_child": 10**6},
    "a child just beyond the last node": {"right_child": -2},
    "a loop": {"right_child": 0},
    "a column that samples do not have": {"feature": 30},
    "a negative column": {"feature": -3},
}


@pytest.mark.parametrize("name", BROKEN_NODES)
def test_trees_that_lead_outside_their_arrays_are_refused(name, path):
    model = cs.EarlyFusion(RandomForestClassifier(3, random_state=0)).fit(X, y)
    with_nodes(model.estimator_.estimators_[1].tree_, **BROKEN_NODES[name])
    cs.save(model, path)
    with pytest.raises(ValueError, match=r"is damaged: (children|columns)"):
        cs.load(path)


def changed_schema(path, change):
    """Rewrite the schema of a file, behind a right checksum."""
    magic, head, payload = path.read_bytes().split(b"\n", 2)
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(payload)) as old, zipfile.ZipFile(buffer, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            new.writestr(info, change(content) if info.filename == "schema.json" else content)
    payload = buffer.getvalue()
    header = {**json.loads(head), "sha256": hashlib.sha256(payload).hexdigest()}
    path.write_bytes(b"\n".join([magic, json.dumps(header).encode(), payload]))


def claiming(n_nodes, path):
    """Save a model of one tree, which says in its file that it has another number of nodes."""
    model = cs.EarlyFusion(DecisionTreeClassifier(random_state=0)).fit(X, y)
    cs.save(model, path)

    def other(content):
        schema = json.loads(content)
        (count,) = [node["node_count"] for node in schema_nodes(schema) if "node_count" in node]
        n = n_nodes(model.estimator_.tree_.node_count)
        count.update(content=str(n), __id__=1)  # another object than equal numbers elsewhere
        return json.dumps(schema).encode()

    changed_schema(path, other)


def test_a_tree_that_claims_fewer_nodes_than_it_has_is_refused(path):
    claiming(lambda n: 3, path)
    with pytest.raises(ValueError, match="is damaged: children in a tree"):
        cs.load(path)


@pytest.mark.parametrize("n_nodes", [0, -1])
def test_a_tree_that_claims_no_nodes_is_refused(n_nodes, path):
    claiming(lambda n: n, path)
    cs.load(path)
    claiming(lambda n: n_nodes, path)
    with pytest.raises(ValueError, match="is damaged: nodes of a tree"):
        cs.load(path)


def test_forests_whose_trees_read_other_columns_are_refused():
    model = RandomForestClassifier(2, random_state=0).fit(X["mean"], y)
    narrow = RandomForestClassifier(2, random_state=0).fit(X["mean"][:, :5], y)
    check_state(model)
    model.estimators_[0] = narrow.estimators_[0]
    with pytest.raises(BadState, match="columns of a forest"):
        check_state(model)
    model = RandomForestClassifier(2, random_state=0).fit(X["mean"], y)
    model.n_features_in_ = 3
    with pytest.raises(BadState, match="columns of a forest"):
        check_state(model)


@pytest.mark.parametrize(("name", "value"), [("n_features_in_", 3), ("n_outputs_", 2)])
def test_a_tree_that_reads_other_columns_than_its_estimator_is_refused(name, value):
    model = DecisionTreeClassifier(random_state=0).fit(X["mean"], y)
    check_state(model)
    setattr(model, name, value)
    with pytest.raises(BadState, match="columns of a tree"):
        check_state(model)


@pytest.mark.parametrize(("field", "value"), [
    ("left", 10**6), ("right", 0), ("feature_idx", 30), ("feature_idx", -1), ("is_categorical", 1), ("is_leaf", 2),
])  # fmt: skip
def test_boosted_trees_that_lead_outside_their_arrays_are_refused(field, value, path):
    model = cs.EarlyFusion(HistGradientBoostingClassifier(max_iter=3)).fit(X, y)
    model.estimator_._predictors[1][0].nodes[field][0] = value
    cs.save(model, path)
    with pytest.raises(ValueError, match="is damaged: "):
        cs.load(path)


def test_boosted_trees_of_one_column_come_back(path):
    model = HistGradientBoostingClassifier(max_iter=3).fit(SIZE[:, None], y)
    cs.save(model, path)
    np.testing.assert_array_equal(cs.load(path).predict_proba(SIZE[:, None]), model.predict_proba(SIZE[:, None]))


@pytest.mark.parametrize("change", [tuple, lambda row: row * 2, lambda row: [None]])
def test_rows_of_boosted_trees_without_a_tree_per_output_are_refused(change):
    model = HistGradientBoostingClassifier(max_iter=3).fit(X["mean"], y)
    check_state(model)
    model._predictors[1] = change(model._predictors[1])
    with pytest.raises(BadState, match="trees of a boosted model"):
        check_state(model)


def test_boosted_models_of_categories_are_refused_at_once(path):
    table = np.column_stack([SIZE, np.arange(len(y)) % 4])
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=[1]).fit(table, y)
    with pytest.raises(TypeError, match=r"Not saved: .* holds a boosted model of categories"):
        cs.save(model, path)
    assert not path.exists()
    with pytest.raises(BadState, match="categories"):
        check_state(model)


@pytest.mark.parametrize("estimator", [GradientBoostingClassifier(n_estimators=2), IsolationForest(n_estimators=2)])
def test_other_estimators_of_trees_are_refused_unless_they_are_named(estimator, path):
    model = estimator.fit(X["mean"], y)
    name = f"{type(model).__module__}.{type(model).__name__}"
    with pytest.raises(TypeError, match=f"holds .*{name}"):
        cs.save(model, path)
    losses = ["sklearn._loss.loss.HalfBinomialLoss"]
    cs.save(model, path, trusted=[name, *losses])
    with pytest.raises(ValueError, match="is refused: it holds"):
        cs.load(path)
    np.testing.assert_array_equal(cs.load(path, trusted=[name, *losses]).predict(X["mean"]), model.predict(X["mean"]))


# -- consensus
def test_consensus_estimators_come_back_and_damage_is_refused(path):
    model = cs.ConsensusClassifier().fit(X, y)
    cs.save(model, path)
    again = cs.load(path)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict_set(X[:20], coverage=0.8), model.predict_set(X[:20], coverage=0.8))
    check_state(again)
    outside = again._models[0].rows.copy()
    outside[-1] = 10**6
    object.__setattr__(again._models[0], "rows", outside)
    with pytest.raises(BadState, match="rows of a base model"):
        check_state(again)
    regressor = cs.ConsensusRegressor().fit(X, SIZE)
    cs.save(regressor, path)
    np.testing.assert_array_equal(cs.load(path).predict_interval(X[:9]), regressor.predict_interval(X[:9]))
    models, regressor._models = regressor._models, [*regressor._models[:-1], None]
    with pytest.raises(BadState, match="base models"):
        check_state(regressor)
    regressor._models = tuple(models)
    with pytest.raises(BadState, match="base models"):
        check_state(regressor)
    regressor._models = models
    check_state(regressor)
    weights = next(iter(regressor._experts.values())).weights
    weights[0, 0], before = np.nan, weights[0, 0]
    with pytest.raises(BadState, match="weights"):
        check_state(regressor)
    weights[0, 0] = before
    check_state(regressor)
    regressor._mean = regressor._mean[:-1]
    with pytest.raises(BadState, match="means of targets"):
        check_state(regressor)


def test_held_out_scores_that_do_not_fit_their_samples_are_refused():
    model = cs.ConsensusRegressor().fit(X, SIZE)
    ((pattern, whole),) = model._experts.items()
    beyond, before = whole.rows.copy(), whole.rows.copy()
    beyond[-1], before[0] = len(y), -1  # one sample that is not there
    for change in ({"rows": beyond}, {"rows": before}, {"held": whole.held[:-1]}, {"held": whole.held.astype(int)}):
        model._experts = {pattern: replace(whole, **change)}
        with pytest.raises(BadState, match="held-out scores"):
            check_state(model)
    model._experts = {pattern: whole}
    check_state(model)


# -- categories
@pytest.mark.parametrize(
    "levels",
    [None, {"b": {}}, {"a": ["sex"]}, {"a": {"sex": ["F", "M"]}}, {"a": {"sex": ("F", 1)}}, {"a": {"sex": ("F", "X")}}],
    ids=repr,
)
def test_forged_categories_are_refused(levels):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"sex": ["F", "M"] * 20, "age": np.arange(40.0)})
    model = cs.ConsensusRegressor().fit({"a": frame}, np.arange(40.0))
    assert model._categories == {"a": {"sex": ("F", "M")}}
    check_state(model)
    model._categories = levels
    with pytest.raises(BadState, match="_categories"):
        check_state(model)


# -- support vector machines, vectorizers and encoders that no fit makes
def set_first(name, value):
    def change(model):
        array = getattr(model, name).copy()
        array[0] = value
        setattr(model, name, array)

    return change


def narrowed(name):
    return lambda model: setattr(model, name, np.ascontiguousarray(getattr(model, name)[:, :1]))


def emptied(name):
    return lambda model: setattr(model, name, getattr(model, name)[:0].copy())


BROKEN_MACHINES = {
    "a count that is too large": set_first("_n_support", 2**29),
    "a negative count": set_first("_n_support", -1),
    "one class": lambda model: setattr(model, "_n_support", model._n_support.sum(keepdims=True)),
    "few columns": narrowed("support_vectors_"),
    "no support vectors": emptied("support_vectors_"),
    "few coefficients": narrowed("_dual_coef_"),
    "no coefficients": emptied("_dual_coef_"),
    "no intercept": emptied("_intercept_"),
    "a slope of probabilities": lambda model: setattr(model, "_probA", np.ones(5)),
}


@pytest.mark.parametrize("name", BROKEN_MACHINES)
@pytest.mark.parametrize("machine", [SVC(), NuSVC(nu=0.1), SVR(), OneClassSVM()], ids=repr)
def test_support_vector_machines_are_validated(machine, name, path):
    model = clone(machine).fit(X["worst"], y if is_classifier(machine) else SIZE)
    cs.save(model, path)
    assert np.array_equal(cs.load(path).predict(X["worst"]), model.predict(X["worst"]))
    BROKEN_MACHINES[name](model)
    cs.save(model, path)
    with pytest.raises(ValueError, match="is damaged: support vectors of a machine"):
        cs.load(path)


def test_machines_of_sparse_samples_and_gram_matrices_are_validated(path):
    sparse = SVC().fit(sp.csr_matrix(X["worst"]), y)
    gram = SVC(kernel="precomputed").fit(X["worst"] @ X["worst"].T, y)
    for model, data in ((sparse, sp.csr_matrix(X["worst"])), (gram, X["worst"] @ X["worst"].T)):
        cs.save(model, path)
        assert np.array_equal(cs.load(path).predict(data), model.predict(data))
    sparse._dual_coef_ = sparse._dual_coef_[:, :3]
    gram.support_[-1] = 10**6
    for model in (sparse, gram):
        cs.save(model, path)
        with pytest.raises(ValueError, match="is damaged: support vectors of a machine"):
            cs.load(path)


WORDS = ["ab cd", "cd ef", "gh ab ef"]
KINDS = np.array([["a", "x"], ["b", "y"], ["c", "x"]] * 4, dtype=object)
BROKEN_COLUMNS = {
    "tokens": (CountVectorizer(), WORDS, lambda v: v.vocabulary_.update(ab=2**30)),
    "weighted tokens": (TfidfVectorizer(), WORDS, lambda v: v.vocabulary_.update(ab=-1)),
    "names": (DictVectorizer(), [{"a": 1.0, "b": 2.0}], lambda v: v.vocabulary_.update(a=2**30)),
    "few columns of categories": (OneHotEncoder(), KINDS, lambda e: setattr(e, "_n_features_outs", [2, 2])),
    "rare categories": (
        OneHotEncoder(min_frequency=5), KINDS,
        lambda e: setattr(e, "_default_to_infrequent_mappings", [np.array([0, 1, 2**30]), None]),
    ),
    "a dropped category": (
        OneHotEncoder(drop="first"), KINDS, lambda e: setattr(e, "_drop_idx_after_grouping", np.array([7, 0], object))
    ),
    "the order of numbers": (
        OneHotEncoder(), np.arange(6.0)[:, None] % 3, lambda e: setattr(e, "categories_", [np.array([2.0, 1.0, 0.0])])
    ),
    "bins": (KBinsDiscretizer(3), X["worst"], lambda b: setattr(b._encoder, "_n_features_outs", [1] * 10)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BROKEN_COLUMNS)
def test_columns_that_do_not_exist_are_refused(name, path):
    transformer, data, damage = BROKEN_COLUMNS[name]
    transformer = clone(transformer).fit(data)
    cs.save(transformer, path)
    assert (cs.load(path).transform(data) != transformer.transform(data)).nnz == 0
    damage(transformer)
    cs.save(transformer, path)
    with pytest.raises(ValueError, match=r"is damaged: (columns of a vocabulary|categories of an encoder)"):
        cs.load(path)


@pytest.mark.parametrize("estimator", [KNeighborsClassifier(algorithm="brute"), KMeans(2, n_init=1)], ids=repr)
def test_estimators_whose_arrays_are_not_checked_need_trust(estimator, path):
    model, name = clone(estimator).fit(X["worst"], y), f"{type(estimator).__module__}.{type(estimator).__name__}"
    with pytest.raises(TypeError, match=f"Not saved: .* holds {name}"):
        cs.save(model, path)
    cs.save(model, path, trusted=[name])
    with pytest.raises(ValueError, match=f"is refused: it holds {name}"):
        cs.load(path)
    assert np.array_equal(cs.load(path, trusted=[name]).predict(X["worst"]), model.predict(X["worst"]))


@pytest.mark.parametrize("vectorizer", [HashingVectorizer(n_features=64), TfidfVectorizer()], ids=repr)
def test_vectorizers_that_open_files_are_refused(vectorizer, path, tmp_path):
    (tmp_path / "a.txt").write_text("ab cd")
    model = make_pipeline(clone(vectorizer).set_params(input="filename"), LogisticRegression())
    model.fit([tmp_path / "a.txt"] * 4, [0, 1] * 2)
    with pytest.raises(TypeError, match=r"holds a vectorizer that opens the files .* set input='content'"):
        cs.save(model, path)
    model[0].input = "content"
    cs.save(model, path)
    changed_schema(path, lambda content: content.replace(json.dumps("content").encode()[1:-1] + b'\\"', b'filename\\"'))
    with pytest.raises(ValueError, match="is damaged: a vectorizer would open the files"):
        cs.load(path)


def test_functions_of_the_library_are_read_where_they_are_trusted(path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X["worst"][:, :4], columns=["a__1", "a__2", "b__1", "b__2"])
    model = make_pipeline(FunctionTransformer(cs.as_views, kw_args={"views": "prefix"}), cs.CoRegularizedRidge())
    model.fit(frame, SIZE)
    name = f"{cs.as_views.__module__}.as_views"
    with pytest.raises(TypeError, match=f"holds {name}"):
        cs.save(model, path)
    cs.save(model, path, trusted=[name])
    with pytest.raises(ValueError, match=f"it holds {name}, which are not trusted"):
        cs.load(path)
    assert np.array_equal(cs.load(path, trusted=[name]).predict(frame), model.predict(frame))
