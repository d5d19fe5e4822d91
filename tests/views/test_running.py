"""Transformers that learn in a stream: the same bits by any chunks, and no sample from the future."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

import consilience as cs
import reference
from consilience import PerView, RandomFeatures, RowBlocks, Views
from consilience.kernels import RBF
from consilience.views.hashing import HashedTokens
from consilience.views.per_view import as_preparation
from consilience.views.running import RunningImputer, RunningScaler, RunningTfidf

rng = np.random.default_rng(0)
N = 60
A = rng.normal(size=(N, 4)) * [1, 100, 1e-3, 1] + [0, 5e6, 1, 0]
HOLED = np.where(rng.random((N, 4)) < 0.15, np.nan, A)
HOLED[:, 3] = A[:, 3]
S = sp.csr_array(sp.random(N, 7, density=0.4, random_state=rng))
LOST = S.copy()
LOST.data[::9] = np.nan
WORDS = ["red", "Blue", "fish", "bird", "sea", "New York"]
TEXT = [" ".join(rng.choice(WORDS, size=rng.integers(1, 6))) for _ in range(N)]
IDS = [rng.integers(0, 40, size=rng.integers(0, 5)).tolist() for _ in range(N)]
MAPS = [{word: float(value) for word, value in zip(WORDS, rng.normal(size=3), strict=False)} for _ in range(N)]

DATA = {"dense": A, "holed": HOLED, "single": HOLED.astype(np.float32), "sparse": S, "lost": LOST, "text": TEXT}
DATA |= {"ids": IDS, "maps": MAPS, "number": np.arange(N) % 7}
FOURIER = RandomFeatures(RBF(gamma=0.1), n_components=9, random_state=0)
STEPS = {
    "standardize": ("standardize", ["dense", "holed", "single", "sparse", "lost"]),
    "impute": ("impute", ["holed", "single", "lost"]),
    "both": (["impute", "standardize"], ["holed", "single", "lost"]),
    "log": ([FunctionTransformer(np.abs), "log", "standardize"], ["holed", "sparse"]),
    "hash": ("hash:32", ["text", "ids", "maps", "number"]),
    "category": ("category:32", ["text", "number"]),
    "tfidf": ("tfidf:32", ["text", "ids"]),
    "scaled hash": (["hash:32", "standardize"], ["text", "maps"]),
    "fourier": (["impute", "standardize", FOURIER], ["holed", "single"]),
    "fourier of sparse": (["standardize", FOURIER], ["sparse"]),
    "fourier by width": (RandomFeatures(n_components=5, random_state=1), ["dense"]),
    "function": (FunctionTransformer(np.tanh), ["dense", "single"]),
    "length": (["standardize", Normalizer()], ["dense", "sparse"]),
    "vectorizer": (HashingVectorizer(n_features=16), ["text"]),
    "passthrough": ("passthrough", ["dense", "sparse"]),
}
CASES = [(steps, data) for steps, (_, kinds) in STEPS.items() for data in kinds]
each_case = pytest.mark.parametrize(("steps", "data"), CASES)


def stream(data):
    """Return views of which one is missing in some rows and comes late, next to one that is always there."""
    value = DATA[data]
    late = np.arange(N) > 14
    late[30:34] = False
    if isinstance(value, list):
        objects = np.empty(N, dtype=object)
        objects[:] = [row if there else None for row, there in zip(value, late, strict=True)]
        value = objects
    return Views(v=value, base=A, mask={"v": late})


def prepare_of(steps):
    return PerView({"v": STEPS[steps][0], "base": "standardize"})


def state(prepare):
    """Return all that was learned, as bytes."""
    parts = []
    for name, own in sorted(prepare.transformers_.items()):
        for step in getattr(own, "steps", [own]):
            fitted = vars(step) if hasattr(step, "__dict__") else {}
            parts.append((name, {k: v.tobytes() for k, v in fitted.items() if isinstance(v, np.ndarray)}))
    return parts, prepare.n_samples_seen_


def dense(X, name):
    block = X.block(name)
    return block.toarray() if sp.issparse(block) else np.asarray(block)


def same(left, right):
    """Tell whether two results have the same views with the same bits in the same rows; NaN equals NaN."""
    pairs = [(dense(X, n)[X.present(n)] if X.present(n).any() else n for X in (left, right)) for n in left.names]
    return left.names == right.names and all(np.array_equal(a, b, equal_nan=a is not b) for a, b in pairs)


def row_of(X, i):
    """Return a sample as a dict of raw rows."""
    row = {}
    for name in X.names:
        if X.present(name)[i]:
            block = X.block(name)
            row[name] = block[[i]] if sp.issparse(block) else block[i]
    return row


def one_by_one(prepare, X):
    return [prepare.learn_transform_one(row_of(X, i)) for i in range(len(X))]


@each_case
def test_any_chunks_and_single_samples_give_the_same_bits(steps, data):
    X = stream(data)
    whole = prepare_of(steps)
    Z = whole.learn_transform(X)
    assert np.array_equal(Z.mask, X.mask)
    for size in (1, 7, 30):
        parts = prepare_of(steps)
        chunks = [parts.learn_transform(X[k : k + size]) for k in range(0, N, size)]
        assert state(parts) == state(whole)
        assert same(Views.concat(chunks), Z)
    assert state(prepare_of(steps).partial_fit(X[:20]).partial_fit(X[20:])) == state(whole)
    single = prepare_of(steps)
    rows = one_by_one(single, X)
    assert state(single) == state(whole)
    for i, row in enumerate(rows):
        assert set(row) == {name for name in X.names if X.present(name)[i]}
        for name, value in row.items():
            assert value.shape == ((1, Z.block(name).shape[1]) if sp.issparse(value) else Z.block(name).shape[1:])
            value = value.toarray()[0] if sp.issparse(value) else value
            assert value.dtype == dense(Z, name).dtype
            np.testing.assert_array_equal(value, dense(Z, name)[i])


@each_case
def test_transform_is_the_next_row_and_stores_nothing(steps, data):
    X = stream(data)
    Z = prepare_of(steps).learn_transform(X)
    for t in (10, 15, 16, 40):  # the view comes at row 15
        prepare = prepare_of(steps).partial_fit(X[:t])
        before = state(prepare)
        assert same(prepare.transform(X[t : t + 1]), Z[t : t + 1])
        one = prepare.transform_one(row_of(X, t))
        assert set(one) == {name for name in Z.names if Z.present(name)[t]}
        for name, value in one.items():
            np.testing.assert_array_equal(np.ravel(value.toarray() if sp.issparse(value) else value), dense(Z, name)[t])
        several = prepare.transform(X[t:])
        assert same(several[:1], Z[t : t + 1])  # later rows do not change it
        assert state(prepare) == before


@each_case
def test_no_later_sample_changes_an_earlier_result(steps, data):
    X = stream(data)
    other = Views.concat([X[:40], X[[59, 58, 40, 20]]])
    assert same(prepare_of(steps).learn_transform(X)[:40], prepare_of(steps).learn_transform(other)[:40])


@pytest.mark.parametrize("data", ["dense", "holed", "single"])
def test_running_scores_are_those_of_the_definition(data):
    ours = PerView("standardize").learn_transform(Views(a=DATA[data]))["a"]
    tol = 1e-4 if data == "single" else 1e-9
    np.testing.assert_allclose(ours, reference.running_scores(DATA[data].astype(float)), rtol=tol, atol=tol)
    n = np.arange(1, N + 1)[:, None]
    assert (np.nan_to_num(np.abs(ours)) <= np.sqrt(n - 1) * (1 + 1e-6)).all()
    assert np.nanmax(np.abs(ours[0])) == 0


@pytest.mark.parametrize("data", ["sparse", "lost"])
def test_running_scores_of_sparse_rows_count_zeros(data):
    table = DATA[data]
    ours = PerView("standardize").learn_transform(Views(a=table))["a"]
    expected = reference.running_scores(table.toarray(), center=False)
    np.testing.assert_allclose(ours.toarray(), expected, rtol=1e-9, atol=1e-12)
    assert np.array_equal(ours.indices, table.indices)


@pytest.mark.parametrize("data", ["holed", "lost"])
def test_single_missing_values_become_running_means(data):
    table = DATA[data]
    prepare = PerView("impute")
    ours = dense(prepare.learn_transform(Views(a=table)), "a")
    full = table.toarray() if sp.issparse(table) else table
    np.testing.assert_allclose(ours, reference.running_means(full), rtol=1e-12, atol=1e-15)
    assert prepare.transformers_["a"].steps[0].n_imputed_ == np.isnan(full).sum() > 0


def test_running_tfidf_is_that_of_the_definition_and_of_scikit_learn():
    counts = HashedTokens(32, signed=False).transform(TEXT)
    prepare = PerView("tfidf:32")
    ours = prepare.learn_transform({"t": TEXT})["t"].toarray()
    np.testing.assert_allclose(ours, reference.running_tfidf(counts.toarray()), rtol=1e-12, atol=1e-14)
    theirs = TfidfTransformer().fit(counts)
    np.testing.assert_allclose(prepare.transformers_["t"].steps[1].idf_, theirs.idf_, rtol=1e-12)
    batch = PerView("tfidf:32").fit_transform({"t": TEXT})["t"].toarray()
    np.testing.assert_allclose(batch, theirs.transform(counts).toarray(), rtol=1e-12)


@pytest.mark.parametrize("data", ["dense", "holed", "sparse", "lost"])
def test_final_statistics_are_those_of_scikit_learn(data):
    scaler = PerView("standardize").partial_fit(Views(a=DATA[data])).transformers_["a"].steps[0]
    theirs = StandardScaler(with_mean=not sp.issparse(DATA[data])).fit(DATA[data])
    np.testing.assert_allclose(scaler.var_, theirs.var_, rtol=1e-12)
    if theirs.with_mean:
        np.testing.assert_allclose(scaler.mean_, theirs.mean_, rtol=1e-12)
    else:
        np.testing.assert_allclose(scaler.mean_, np.nanmean(DATA[data].toarray(), axis=0), rtol=1e-12)


def test_no_sample_is_kept():
    prepare = PerView("standardize").partial_fit(Views(a=A))
    kept = np.concatenate([v for v in vars(prepare.transformers_["a"].steps[0]).values() if isinstance(v, np.ndarray)])
    assert not np.isin(A, kept).any()


@pytest.mark.filterwarnings("error")
def test_time_stamps_and_huge_values_keep_finite_scores():
    stamps = 1_700_000_000_000_000_000 + 256.0 * rng.integers(0, 10, size=200)
    exact = reference.running_scores((stamps - stamps[0])[:, None])
    Z = PerView("standardize").learn_transform(Views(t=stamps[:, None]))["t"]
    np.testing.assert_allclose(Z, exact, rtol=1e-9, atol=1e-12)
    huge = np.column_stack([[1.0, 1e300, -1e300, 2.0, 3.0], [1e-160, 2e-160, 0, 0, 0], np.full(5, 0.1)])
    for table in (huge, sp.csr_array(huge)):
        Z = dense(PerView("standardize").learn_transform(Views(h=table)), "h")
        assert np.isfinite(Z).all()
        assert (np.abs(Z[:, 0]) <= 3).all()
    Z = PerView("standardize").learn_transform(Views(h=huge))["h"]
    assert Z[1, 0] == pytest.approx(1)
    assert not Z[:, 1:].any()  # constant as far as squares can tell


def test_columns_are_found_by_name_and_a_view_may_be_sparse_or_dense():
    frame = pd.DataFrame(A, columns=list("pqrs"))
    prepare = PerView("standardize").partial_fit({"a": frame[:20]})
    turned = clone(prepare).partial_fit({"a": frame[:20]}).learn_transform({"a": frame[20:][list("srqp")]})
    straight = prepare.learn_transform({"a": frame[20:]})
    assert turned == straight
    assert straight.feature_names["a"] == tuple("pqrs")
    filling = PerView(["impute", "standardize"], missing_columns="fill").partial_fit({"a": frame[:20]})
    with pytest.warns(UserWarning, match="lacks 1 of 4 columns"):
        filled = filling.learn_transform({"a": frame[20:22].drop(columns="q")})["a"]
    holed = PerView(["impute", "standardize"]).partial_fit({"a": frame[:20]})
    expected = holed.learn_transform({"a": frame[20:22].assign(q=np.nan)})["a"]
    np.testing.assert_array_equal(filled, expected)
    with pytest.raises(ValueError, match="has no column 'q'"):
        PerView("standardize").partial_fit({"a": frame[:20]}).transform({"a": frame.drop(columns="q")})
    mixed = PerView("standardize").partial_fit(Views(a=A[:20]))
    assert mixed.learn_transform(Views(a=sp.csr_array(A[20:])))["a"].tobytes() == straight["a"].tobytes()
    mixed = PerView("standardize").partial_fit(Views(a=S[:20]))
    expected = PerView("standardize").learn_transform(Views(a=S))["a"][20:].toarray()
    np.testing.assert_array_equal(dense(mixed.learn_transform(Views(a=S[20:].toarray())), "a"), expected)


INFINITE = np.where(np.arange(N * 4).reshape(N, 4) == 27, np.inf, A)
REFUSED = [
    ("standardize", {"v": A, "base": INFINITE}, "View 'base' contains infinity in row 6, column 3"),
    ("standardize", {"v": INFINITE, "base": A}, "View 'v' contains infinity in row 6, column 3"),
    ("standardize", {"v": A[:, :3], "base": A}, "View 'v' of X has 3 features, but PerView is expecting 4"),
    ("standardize", {"v": TEXT, "base": A}, "View 'v' holds objects, but held numbers"),
    (["standardize", "log"], {"v": A, "base": A}, "takes no negative values"),
]


@pytest.mark.parametrize(("steps", "data", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_a_refused_chunk_changes_nothing(steps, data, message):
    good = Views(v=np.zeros((3, 4)), base=A[:3])
    prepare, other = (PerView({"base": "standardize", "v": steps}).partial_fit(good) for _ in range(2))
    with pytest.raises((ValueError, TypeError), match=message):
        prepare.learn_transform(data)
    assert state(prepare) == state(other)
    with pytest.raises((ValueError, TypeError), match=message.partition(" in row")[0]):
        prepare.learn_transform_one({name: value[6] for name, value in data.items()})
    assert state(prepare) == state(other)
    assert prepare.learn_transform(good) == other.learn_transform(good)


def test_a_refused_first_chunk_leaves_no_state():
    prepare = PerView({"a": "standardize", "b": ["standardize", "log"]})
    with pytest.raises(ValueError, match=r"View 'b' has .* in row 1, column 0"):
        prepare.learn_transform({"a": A, "b": -np.arange(float(N))[:, None]})
    assert vars(prepare).keys() == vars(clone(prepare)).keys()


def test_missing_views_and_rows_of_nan_update_nothing():
    prepare = PerView("standardize").partial_fit({"a": A, "b": A[:, :2]})
    before = state(prepare)[0]
    out = prepare.learn_transform_one({"a": np.full(4, np.nan), "b": [1.0, 2.0]})
    assert set(out) == {"b"}
    assert state(prepare)[0][0] == before[0]
    assert state(prepare)[0][1] != before[1]
    assert set(prepare.transform_one({"a": None, "b": A[0, :2]})) == {"b"}
    with pytest.raises(ValueError, match="no view"):
        prepare.learn_transform_one({"a": None})
    assert prepare.n_samples_seen_ == N + 1


def test_raw_rows_of_any_form_are_read_alike():
    X = {"a": A, "s": S, "t": TEXT, "i": IDS, "m": MAPS}
    prepare = PerView({"a": "standardize", "s": "standardize"}, remainder="hash:16")
    Z = prepare.learn_transform(X)
    forms = [
        lambda i: {"a": A[i].tolist(), "s": S[[i]], "t": TEXT[i], "i": IDS[i], "m": MAPS[i]},
        lambda i: {"a": pd.Series(A[i]), "s": S[[i]].tocoo(), "t": TEXT[i], "i": np.array(IDS[i], int), "m": MAPS[i]},
        lambda i: {"a": tuple(A[i]), "s": S[[i]].tocsc(), "t": TEXT[i], "i": tuple(IDS[i]), "m": MAPS[i]},
    ]
    for form in forms:
        single = clone(prepare)
        rows = [single.learn_transform_one(form(i)) for i in range(N)]
        assert state(single) == state(prepare)
        for name in Z.names:
            values = [np.ravel(row[name].toarray() if sp.issparse(row[name]) else row[name]) for row in rows]
            np.testing.assert_array_equal(values, dense(Z, name))


def test_nested_lists_of_numbers_are_no_row():
    prepare = PerView("standardize").partial_fit({"a": A})
    row = prepare.transform_one({"a": A[0]})["a"]
    np.testing.assert_array_equal(prepare.transform_one({"a": [A[0].tolist()]})["a"], row)
    with pytest.raises(ValueError, match="View 'a' must have 2 dimensions"):
        prepare.transform_one({"a": [[A[0].tolist()]]})


@pytest.mark.parametrize("path", ["file", "pickle"])
@each_case
def test_a_stream_goes_on_after_saving_and_loading(steps, data, path, tmp_path):
    if path == "file" and steps in ("function", "log"):
        pytest.skip("functions are not saved in model files")
    X = stream(data)
    prepare = prepare_of(steps).partial_fit(X[:40])
    if path == "file":
        cs.save(prepare, tmp_path / "prepare.cons")
        again = cs.load(tmp_path / "prepare.cons")
    else:
        again = pickle.loads(pickle.dumps(prepare))
    assert state(again) == state(prepare)
    assert same(again.learn_transform(X[40:]), prepare.learn_transform(X[40:]))


DAMAGES = [
    ("standardize", 0, "_mean", np.zeros(3)),
    ("standardize", 0, "_count", np.full(4, -1.0)),
    ("standardize", 0, "_squares", np.zeros(4, dtype=np.float32)),
    ("standardize", 0, "_origin", np.full(4, np.nan)),
    ("impute", 0, "_mean", np.zeros((4, 1))),
    ("tfidf", 1, "_count", np.zeros((32, 1))),
    ("tfidf", 1, "_rows", np.zeros(2)),
    ("fourier", 2, "features_", None),
]


@pytest.mark.parametrize(("steps", "k", "name", "value"), DAMAGES)
def test_damaged_states_are_refused(steps, k, name, value, tmp_path):
    prepare = prepare_of(steps).partial_fit(stream(STEPS[steps][1][0]))
    setattr(prepare.transformers_["v"].steps[k], name, value)
    cs.save(prepare, tmp_path / "prepare.cons")
    with pytest.raises(ValueError, match="is damaged"):
        cs.load(tmp_path / "prepare.cons")


def test_hashing_is_that_of_scikit_learn_and_the_same_in_every_process():
    ours = PerView("hash:64").fit_transform({"t": ["Red fish, red", "fish"]})["t"]
    theirs = FeatureHasher(64, input_type="string").transform([["red", "fish", "red"], ["fish"]])
    assert abs(ours - theirs).sum() == 0
    one = PerView("category:64").fit_transform({"t": ["New York", "york"]})["t"]
    assert abs(one - FeatureHasher(64, input_type="string").transform([["New York"], ["york"]])).sum() == 0
    maps = PerView({"t": "hash:64"}).fit_transform({"t": [{"a": 2.0, "b": None}, {"c": "x", 3: True}]})["t"]
    theirs = FeatureHasher(64, input_type="dict").transform([{"a": 2.0}, {"c": "x", "3": 1}])
    assert abs(maps - theirs).sum() == 0
    ids = PerView({"t": "hash:64"}).fit_transform({"t": [[3, 7], [3]]})["t"]
    assert abs(ids - FeatureHasher(64, input_type="string").transform([["3", "7"], ["3"]])).sum() == 0
    single = PerView({"t": "hash:64"}).fit_transform({"t": [3, 7.5]})["t"]
    assert abs(single - FeatureHasher(64, input_type="string").transform([["3"], ["7.5"]])).sum() == 0
    code = "from consilience.views.hashing import HashedTokens; print(HashedTokens(64).transform(['red']).indices[0])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=None).stdout
    assert int(told) == HashedTokens(64).transform(["red"]).indices[0]


def test_recipes_for_tokens_leave_tables_and_those_for_tables_leave_text():
    X = Views(a=A, t=TEXT, s=S)
    for learn in (PerView.fit_transform, PerView.learn_transform):
        assert learn(PerView("hash:8"), X)["a"] is A
        assert learn(PerView("hash:8"), X)["t"].shape == (N, 8)
        assert learn(PerView("standardize"), X).kind("t") == "objects"
    prepare = PerView("standardize", remainder="drop").partial_fit(X)
    assert prepare.learn_transform_one({"a": A[0], "t": "a b"})["t"] == "a b"


def test_features_of_kernels_are_steps_of_samples_in_memory_too():
    steps = PerView(["standardize", RandomFeatures(n_components=6, random_state=3)])
    scaled = PerView("standardize").fit_transform(Views(a=A, b=A[:, :2]))
    expected = RandomFeatures(n_components=6, random_state=3).fit_transform(scaled)
    assert steps.fit_transform(Views(a=A, b=A[:, :2])) == expected
    stream = RandomFeatures(RBF(gamma=0.25), n_components=6, random_state=3).fit_transform(Views(a=A / 1e7))
    ours = PerView(RandomFeatures(n_components=6, random_state=3)).learn_transform(Views(a=A / 1e7))  # gamma = 1 / 4
    np.testing.assert_allclose(ours["a"], stream["a"], rtol=1e-12, atol=1e-14)
    nystroem = PerView(cs.Nystroem(n_components=6, random_state=3)).fit_transform(Views(a=A))
    assert nystroem == cs.Nystroem(n_components=6, random_state=3).fit_transform(Views(a=A))


def test_blocks_of_rows_and_preparations_of_estimators():
    blocks = RowBlocks(lambda: ((Views(a=A[k : k + 9]), None) for k in range(0, N, 9)))
    assert state(PerView("standardize").partial_fit(blocks)) == state(PerView("standardize").partial_fit(Views(a=A)))
    assert as_preparation(None) is None
    for given in ("standardize", ["impute", "standardize"], {"a": "log"}):
        assert as_preparation(given).get_params()["transformers"] == given
    fitted = PerView("log", remainder="drop").fit(abs(A))
    assert as_preparation(fitted) is not fitted
    assert not hasattr(as_preparation(fitted), "transformers_")
    assert as_preparation(fitted).remainder == "drop"


def test_transformers_of_tables_work_alone():
    scaler, imputer, tfidf = RunningScaler(), RunningImputer(), RunningTfidf()
    Z = scaler.learn_transform(A[:20])
    before = RunningScaler().partial_fit(A[:5]).partial_fit(A[5:19])
    np.testing.assert_array_equal(before.transform(A[19:20]), Z[19:])
    assert imputer.partial_fit(A).transform(np.full((1, 4), np.nan))[0] == pytest.approx(A.mean(axis=0))
    assert imputer.n_imputed_ == 0
    assert tfidf.learn_transform(HashedTokens(8, signed=False).transform(TEXT)).shape == (N, 8)
    assert scaler.get_feature_names_out(("a",)) == ("a",)
    with pytest.raises(ValueError, match="Got rows of 3 columns after rows of 4"):
        scaler.transform(A[:, :3])


STREAM = Views(a=A, t=TEXT)
ERRORS = [
    (lambda: PerView("quantile").partial_fit(Views(a=A)), "View 'a': the recipe 'quantile' needs all samples"),
    (lambda: PerView("top_k:3").partial_fit(Views(a=A)), "the recipe 'top_k:3' needs all samples"),
    (lambda: PerView("variance:3").learn_transform_one({"a": A[0]}), "the recipe 'variance:3' needs all samples"),
    (lambda: PerView(StandardScaler()).partial_fit(Views(a=A)), "chunks of a stream. Use the recipe 'standardize'"),
    (lambda: PerView(IncrementalPCA()).partial_fit(Views(a=A)), "would depend on the chunks of a stream. Use a recipe"),
    (lambda: PerView(PCA(2)).partial_fit(Views(a=A)), "View 'a': PCA(n_components=2) needs all samples."),
    (lambda: PerView({"t": TfidfVectorizer()}).partial_fit(STREAM), "needs all samples. Use the recipe 'tfidf'"),
    (lambda: PerView(cs.Nystroem()).partial_fit(Views(a=A)), "View 'a': Nystroem with RBF(gamma='scale') needs all"),
    (lambda: PerView(RandomFeatures("linear")).partial_fit(Views(a=A)), "use RandomFeatures with the kernel RBF or"),
    (lambda: PerView(RandomFeatures(RBF("median"))).partial_fit(Views(a=A)), "takes a parameter from the data"),
    (lambda: PerView(RandomFeatures(n_components=0.5)).partial_fit(Views(a=A)), "is a fraction of the samples"),
    (lambda: PerView("standardize").fit(A).partial_fit(A), "PerView was fitted by `fit`, and its transformers cannot"),
    (lambda: PerView("hash:0").fit({"t": TEXT}), "The recipe 'hash:0' must have a number of columns"),
    (lambda: PerView("tfidf:x").partial_fit({"t": TEXT}), "The recipe 'tfidf:x' must have a number of columns"),
    (lambda: PerView({"t": "hash"}).partial_fit({"t": [[["a"]], ["b"]]}), "Tokens are strings or numbers; got"),
    (lambda: PerView({"t": "hash"}).fit_transform({"t": [{"a": [1]}]}), "A map has [1] for the key 'a'."),
    (lambda: PerView({"s": "hash"}).fit_transform({"s": S}), "View 's': Hashing takes text, lists"),
    (lambda: PerView({"a": "drop"}).partial_fit(Views(a=A)), "have none of the remaining views"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_bad_input_gets_a_sentence(call, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert message in str(caught.value)


def test_nothing_is_transformed_before_the_first_sample_and_fit_starts_again():
    for call in (lambda p: p.transform(A), lambda p: p.transform_one({"view0": A[0]})):
        with pytest.raises(NotFittedError):
            call(PerView("standardize"))
    prepare = PerView("standardize").partial_fit(A)
    assert prepare.fit(A).transform(A) == PerView("standardize").fit_transform(A)
    assert prepare.transform_one({"view0": A[0]})["view0"] == pytest.approx(prepare.transform(A)["view0"][0])


def test_infinite_values_are_found_among_nan():
    block = HOLED.copy()
    block[7, 3] = -np.inf
    named = pd.DataFrame(block, columns=list("pqrs"), index=[f"s{i}" for i in range(N)])
    for given, place in (
        (block, "row 7, column 3"),
        (sp.csr_array(block), "row 7, column 3"),
        (named, "'s7', column 's'"),
    ):
        with pytest.raises(ValueError, match=f"View 'a' contains infinity in .*{place}"):
            PerView("standardize").partial_fit(Views(a=given))


def test_one_infinite_number_of_a_sparse_row_is_refused():
    model = cs.OnlinePerceptron()
    for k in range(4):
        model.learn_one({"s": S[[k]]}, k % 2)
    row = sp.csr_array(np.array([[1.0, np.inf, 0, 0, 0, 2.0, 0]]))
    with pytest.raises(ValueError, match="infinity"):
        model.learn_one({"s": row}, 1)
    assert model.n_samples_seen_ == 4


def test_one_infinite_number_of_a_sparse_row_is_refused_by_a_preparation():
    prepare = PerView("standardize").partial_fit(Views(s=S))
    before = state(prepare)
    row = sp.csr_array(np.array([[1.0, np.inf, 0, 0, 0, 2.0, 0]]))
    for call in (prepare.learn_transform_one, prepare.transform_one):
        with pytest.raises(ValueError, match="View 's' contains infinity in row 0, column 1"):
            call({"s": row})
    assert state(prepare) == before


def test_scores_of_a_column_do_not_depend_on_other_columns():
    gaps = np.where(np.arange(N) % 3 == 1, np.nan, 1.0)  # rows with and without NaN take different loops
    both = PerView("standardize").learn_transform(Views(a=np.column_stack([A, gaps])))["a"]
    alone = PerView("standardize").learn_transform(Views(a=A))["a"]
    np.testing.assert_array_equal(both[:, :4], alone)


def test_a_sample_that_the_estimator_refuses_leaves_its_preparation():
    learned = cs.KernelPerceptron(RBF(0.5), prepare=["impute", "standardize"])
    for k in range(6):
        learned.learn_one({"a": HOLED[k]}, k % 2)
    before = state(learned.preparation_)

    def fail(*args):
        raise FloatingPointError("overflow")

    learned._machine.learn = fail  # such as a kernel that overflows
    with pytest.raises(FloatingPointError):
        learned.learn_one({"a": HOLED[6]}, 1)
    assert state(learned.preparation_) == before


def test_names_of_columns_follow_the_steps_that_move_them():
    turned = FunctionTransformer(lambda X: X[:, ::-1], feature_names_out=lambda _, names: names[::-1])
    frame = pd.DataFrame(np.abs(A), columns=list("pqrs"))
    prepare = PerView([turned, "log", "standardize"])
    Z = prepare.learn_transform({"a": frame})
    assert Z.feature_names["a"] == tuple("srqp")
    assert PerView("log").learn_transform({"a": frame}).feature_names["a"] == tuple("pqrs")
    bad = pd.DataFrame({"p": [1.0, 1], "q": [1.0, -2], "r": [1.0, 1], "s": [1.0, 1]})
    with pytest.raises(ValueError, match=r"View 'a' has -2 in row 1, column 'q', but the recipe 'log'"):
        prepare.learn_transform({"a": bad})  # by its name, or its place after the step, but not by another name
    double = FunctionTransformer(lambda X: 2 * X, feature_names_out=lambda _, names: [f"2 {name}" for name in names])
    with pytest.raises(ValueError, match="View 'a' has -4 in row 1, column '2 q', but the recipe 'log'"):
        PerView([double, "log"]).learn_transform({"a": bad[["q"]]})
