"""Memory: what is available, what fits need, refusals before any work, landmarks for "auto", blocks of predictions."""

import os
import subprocess
import sys
import time
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import consilience as cs
from consilience import _backend
from consilience.batch import _memory
from consilience.batch._estimator import BatchEstimator
from consilience.kernels import RBF, Linear, Precomputed, view_grams

RNG = np.random.default_rng(0)


def views(n, m=2, dtype=np.float64):
    """Return views and a target that they predict."""
    hidden = RNG.normal(size=(n, 2))
    blocks = [hidden @ RNG.normal(size=(2, 4)) + RNG.normal(size=(n, 4)) for _ in range(m)]
    return cs.Views({f"v{k}": block.astype(dtype) for k, block in enumerate(blocks)}), hidden[:, 0]


def target(model, y):
    if isinstance(model, cs.OutputKernelRidge):
        return np.column_stack([y, -y])
    return np.where(y > 0, "yes", "no") if is_classifier(model) else y


METRICS = ("learned", "block_sparse", "covariance", "diagonal")
EXACT = {  # estimators whose exact fit holds matrices of n x n values, with what changes their number
    "ridge": cs.CoRegularizedRidge(),
    "agreement": cs.CoRegularizedRidge(agreement_penalty=1e-3),
    "graph": cs.CoRegularizedRidge(graph_penalty=1e-6),
    "both": cs.CoRegularizedRidge(agreement_penalty=1e-3, graph_penalty=1e-6),
    "learned": cs.CoRegularizedRidge(view_weights="learned", max_iter=3, n_restarts=1),
    "learned agreement": cs.CoRegularizedRidge(
        view_weights="learned", agreement_penalty=1e-3, max_iter=3, n_restarts=1
    ),
    "classes": cs.CoRegularizedRidgeClassifier(),
    "cv": cs.CoRegularizedRidgeCV(),
    "cv agreement": cs.CoRegularizedRidgeCV(alphas=(1e-3, 1e-2), agreement_penalties=(0.0, 1e-3)),
    "classes cv": cs.CoRegularizedRidgeClassifierCV(alphas=(1e-3, 1e-2)),
    "svc": cs.CoRegularizedSVC(),
    "svc agreement": cs.CoRegularizedSVC(agreement_penalty=1e-3, max_iter=3),
    **{f"metric {kind}": cs.ViewMetricRidge(metric=kind) for kind in METRICS},
    "metric classes": cs.ViewMetricRidgeClassifier(),
    "metric cv": cs.ViewMetricRidgeCV(alphas=(1e-2, 0.1)),
    "metric cv diagonal": cs.ViewMetricRidgeCV(alphas=(1e-2, 0.1), metric="diagonal"),
    "metric classes cv": cs.ViewMetricRidgeClassifierCV(alphas=(1e-2, 0.1)),
    "kernels": cs.MultipleKernelRidge(),
    "kernels classes": cs.MultipleKernelRidgeClassifier(),
    "outputs": cs.OutputKernelRidge(),
    "outputs classes": cs.OutputKernelRidgeClassifier(),
    "banded": cs.BandedRidgeCV(random_state=0),
    "vector": cs.VectorValuedRegressor(),
    "vector covariance": cs.VectorValuedRegressor(view_kernel="covariance"),
    "vector classes": cs.VectorValuedClassifier(max_iter=3),
}
exact = pytest.mark.parametrize("name", EXACT)


# -- what is available
@pytest.mark.parametrize(
    ("text", "size"),
    [("8GB", 8 * 10**9), ("1.5 GiB", 3 * 2**29), ("500mb", 5 * 10**8), ("2T", 2 * 10**12), ("1e9", 10**9), ("7b", 7)],
)
def test_the_environment_variable_sets_the_memory(monkeypatch, text, size):
    monkeypatch.setenv("CONSILIENCE_MEMORY", text)
    assert _backend.available_memory() == size


@pytest.mark.parametrize("text", ["much", "8 XB", "0", "-1GB", "GB"])
def test_a_size_that_cannot_be_read_is_named(monkeypatch, text):
    monkeypatch.setenv("CONSILIENCE_MEMORY", text)
    with pytest.raises(ValueError, match=f"CONSILIENCE_MEMORY must be a size such as '8GB'; got '{text}'"):
        _backend.available_memory()


def test_the_system_has_memory(monkeypatch):
    monkeypatch.delenv("CONSILIENCE_MEMORY", raising=False)
    assert 2**20 < _backend.available_memory() < 2**50


def _write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_cgroups_of_version_2_count_up_to_the_root(tmp_path):
    own = tmp_path / "cgroup"
    own.write_text("0::/outer/inner\n")
    root = tmp_path / "fs"
    _write(root, memory__max="max\n", memory__current="1\n")
    assert _backend._cgroup_memory(root, own) >= 2**60
    _write(root / "outer", memory__max="1000\n", memory__current="900\n", memory__stat="anon 1\ninactive_file 400\n")
    _write(root / "outer" / "inner", memory__max="800\n", memory__current="100\n")
    assert _backend._cgroup_memory(root, own) == 500  # pages of files can be dropped
    _write(root / "outer" / "inner", memory__max="300\n")
    assert _backend._cgroup_memory(root, own) == 200


def test_cgroups_of_version_1(tmp_path):
    own = tmp_path / "cgroup"
    own.write_text("5:cpu:/x\n4:memory:/group\n0::/\n")
    root = tmp_path / "fs"
    _write(root / "memory", memory__limit_in_bytes=f"{2**63 - 4096}\n", memory__usage_in_bytes="5\n")
    _write(root / "memory" / "group", memory__limit_in_bytes="1000\n", memory__usage_in_bytes="700\n")
    assert _backend._cgroup_memory(root, own) == 300


def test_sizes_are_written_with_three_digits():
    assert [_backend.size_text(x) for x in (298.02 * 2**30, 1.234 * 2**30, 2**29)] == ["298 GiB", "1.23 GiB", "512 MiB"]


# -- the estimate
def test_every_exact_batch_estimator_has_an_estimate():
    known = {type(model).__name__ for model in EXACT.values()}
    others = {
        "EarlyFusion", "LateFusion",  # what they wrap decides
        "MaxMarginClassifier", "MaxMarginRegressor",  # a cache of rows
        "ConsensusClassifier", "ConsensusRegressor",  # features from 5,000 samples on
    }  # fmt: skip
    kinds = [kind for kind in (getattr(cs, name) for name in cs.__all__) if isinstance(kind, type)]
    every = {kind.__name__ for kind in kinds if issubclass(kind, BatchEstimator)}
    assert every - others == known == set(_memory._MATRICES)


@exact
@pytest.mark.parametrize("m", [1, 3])
def test_the_estimate_is_the_peak_that_is_measured(name, m):
    n, model = 500, clone(EXACT[name])
    X, y = views(n, m)
    y = target(model, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:60], y[:60])  # compiled loops
        tracemalloc.start()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    size = _memory.FitSize(n, m, 2)
    estimate = _memory.exact_bytes(model, size)
    assert 0.9 * peak <= estimate <= 1.9 * peak


@pytest.mark.parametrize("name", ["ridge", "svc", "classes"])
def test_single_precision_takes_half_until_double_precision_is_needed(name):
    n, model = 600, clone(EXACT[name])
    X, y = views(n, 2, np.float32)
    y = target(model, y)
    model.fit(X[:60], y[:60])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    single, double = (_memory.exact_bytes(model, _memory.FitSize(n, 2, 1, each)) for each in (True, False))
    assert 0.85 * peak <= single <= 1.4 * peak < 1.4 * double


def test_penalties_keep_the_spectra_of_ratios_that_come_again():
    grid = cs.CoRegularizedRidgeCV(alphas=(1e-3, 1e-2, 0.1), agreement_penalties=(0.0, 1e-3, 1e-2))
    assert _memory._spectra(cs.CoRegularizedRidgeCV()) == 1
    assert _memory._spectra(grid) == 3


# -- refusals
@exact
def test_a_fit_that_needs_more_memory_is_refused_before_any_work(monkeypatch, name):
    monkeypatch.setenv("CONSILIENCE_MEMORY", "200MB")
    model = clone(EXACT[name])
    X, y = views(20_000)
    start = time.perf_counter()
    with pytest.raises(MemoryError) as refused:
        model.fit(X, target(model, y))
    message = str(refused.value)
    assert time.perf_counter() - start < 2
    assert message.startswith(f"{type(model).__name__} with 20,000 samples, 2 kernels and exact kernels needs about ")
    assert "GiB of memory, and 191 MiB are available." in message
    has = "n_components" in model.get_params()
    assert ("Set `n_components`, such as n_components=" in message) == has
    assert "fewer samples." in message
    assert not vars(model).keys() & {"n_components_", "kernels_", "solution_"}  # nothing of the fit is left


def test_the_remedy_works(monkeypatch):
    monkeypatch.setenv("CONSILIENCE_MEMORY", "200MB")
    X, y = views(6000)
    with pytest.raises(MemoryError) as refused:
        cs.CoRegularizedRidge().fit(X, y)
    number = int(str(refused.value).partition("n_components=")[2].partition(",")[0])
    model = cs.CoRegularizedRidge(n_components=number, random_state=0).fit(X, y)
    assert model.n_components_ == number


def test_landmarks_that_need_more_memory_are_refused(monkeypatch):
    monkeypatch.setenv("CONSILIENCE_MEMORY", "200MB")
    X, y = views(20_000)
    match = r"20,000 samples, 2 kernels and 5,000 landmarks each needs about .* Set `n_components` to at most \d+"
    with pytest.raises(MemoryError, match=match):
        cs.CoRegularizedRidge(n_components=5000).fit(X, y)


def test_the_cache_of_margins_is_compared_with_the_memory(monkeypatch):
    monkeypatch.setenv("CONSILIENCE_MEMORY", "50MB")
    X, y = views(3000)
    with pytest.raises(MemoryError, match=r"cache_size=1000 needs about .* such as cache_size=25, or `n_components`"):
        cs.MaxMarginClassifier().fit(X, y > 0)
    cs.MaxMarginClassifier(cache_size=25).fit(X, y > 0)


def test_single_precision_is_refused_where_its_second_attempt_does_not_fit(monkeypatch):
    X, y = views(3000, 1, np.float32)
    size = _memory.FitSize(3000, 1, 1)
    model = cs.CoRegularizedRidge(alpha=1e-12)  # too small for single precision
    single, double = (_memory.exact_bytes(model, size._replace(single=each)) for each in (True, False))
    monkeypatch.setenv("CONSILIENCE_MEMORY", f"{(single + double) / 2:.0f}")
    with pytest.raises(MemoryError, match="CoRegularizedRidge with 3,000 samples, 1 kernel and exact kernels"):
        model.fit(X, y)
    assert cs.CoRegularizedRidge(alpha=0.1).fit(X, y).n_components_ is None


CHILD = """
import resource, sys, time
import numpy as np
import consilience as cs
from sklearn.base import is_classifier
sys.path.insert(0, {tests!r})
from batch.test_memory import EXACT, target
X = cs.Views(a=np.random.default_rng(0).normal(size=(50_000, 4)), b=np.ones((50_000, 1)))
y = X["a"][:, 0]
resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9))
models = dict(EXACT, margin=cs.MaxMarginClassifier(cache_size=4000), gram=cs.LateFusion)
for name, model in models.items():
    start = time.perf_counter()
    try:
        if name == "gram":
            cs.kernels.RBF(1.0)(X["a"])
        else:
            model.fit(X, target(model, y))
        print("no refusal", name)
    except MemoryError as error:
        known = "of memory, and" in str(error) and "are available." in str(error) and "50,000 samples" in str(error)
        print("refused" if known and time.perf_counter() - start < 5 else "fault", name, error)
print("alive")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are enforced on Linux")
def test_nothing_is_killed_and_every_estimator_says_why():
    tests = os.path.dirname(os.path.dirname(__file__))
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(tests=tests)], capture_output=True, text=True, check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[-1:] == ["alive"], done.stderr[-2000:]
    assert len(lines) == len(EXACT) + 3
    assert all(line.startswith("refused") for line in lines[:-1]), "\n".join(lines)


# -- kernels
@pytest.mark.parametrize("kernel", [RBF(0.5), Linear(), RBF(0.5) * Linear() + 2.0], ids=repr)
def test_a_kernel_by_hand_is_refused(monkeypatch, kernel):
    monkeypatch.setenv("CONSILIENCE_MEMORY", "8GB")
    X = np.zeros((200_000, 2))
    start = time.perf_counter()
    with pytest.raises(MemoryError) as refused:
        kernel(X)
    assert time.perf_counter() - start < 2
    needed = {1: "298 GiB", 2: "596 GiB"}[kernel._n_matrices()]
    assert str(refused.value) == (
        f"{kernel!r} between 200,000 and 200,000 samples needs about {needed} of memory, and 7.45 GiB are available. "
        "Evaluate it between blocks of rows, kernel(X[rows], Y), or use `Nystroem` features."
    )
    assert kernel(X[:10], X[:1000]).shape == (10, 1000)


def test_kernels_of_all_views_are_refused(monkeypatch):
    monkeypatch.setenv("CONSILIENCE_MEMORY", "1GB")
    X = cs.Views(a=np.zeros((100_000, 1)))
    with pytest.raises(MemoryError, match="between 100,000 and 100,000 samples"):
        view_grams({"a": RBF(1.0)}, X)


def test_a_look_up_of_rows_is_refused(monkeypatch):
    K = np.eye(3000)
    monkeypatch.setenv("CONSILIENCE_MEMORY", "20MB")
    with pytest.raises(MemoryError, match="Precomputed"):
        Precomputed()(K)


# -- "auto"
AUTO = [name for name, model in EXACT.items() if "n_components" in model.get_params()]


@pytest.mark.parametrize("name", AUTO)
def test_auto_is_exact_for_few_samples(name):
    X, y = views(80)
    model = clone(EXACT[name])
    y = target(model, y)
    plain, auto = model.fit(X, y), clone(model).set_params(n_components="auto").fit(X, y)
    assert auto.n_components_ is None is plain.n_components_
    same = [each.decision_function(X) if is_classifier(each) else each.predict(X) for each in (plain, auto)]
    np.testing.assert_array_equal(*same)


@pytest.mark.parametrize("name", AUTO)
def test_auto_takes_the_landmarks_that_fit_into_memory(monkeypatch, name):
    X, y = views(300)
    model = clone(EXACT[name]).set_params(n_components="auto")
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    y = target(model, y)
    monkeypatch.setenv("CONSILIENCE_MEMORY", "2MB")
    auto = clone(model).fit(X, y)
    assert isinstance(auto.n_components_, int)
    given = clone(model).set_params(n_components=auto.n_components_).fit(X, y)
    assert given.n_components_ == auto.n_components_
    monkeypatch.delenv("CONSILIENCE_MEMORY")
    same = [each.decision_function(X) if is_classifier(each) else each.predict(X) for each in (given, auto)]
    np.testing.assert_allclose(*same, rtol=1e-10, atol=1e-12)
    assert model.set_params(n_components=0.1).fit(X, y).n_components_ == 30


def test_margins_and_consensus_have_auto_too(monkeypatch, tmp_path):
    X, y = views(400)
    for model in (cs.MaxMarginClassifier(), cs.ConsensusClassifier()):
        labels = np.where(y > 0, "yes", "no")
        assert model.set_params(n_components="auto").fit(X, labels).n_components_ is None
        monkeypatch.setenv("CONSILIENCE_MEMORY", "1MB")
        small = clone(model).fit(X, labels)
        monkeypatch.delenv("CONSILIENCE_MEMORY")
        assert 1 <= small.n_components_ < 400
        assert small.score(X, labels) > 0.6
        cs.save(small, tmp_path / "model")
        again = cs.load(tmp_path / "model")
        assert again.n_components_ == small.n_components_
        np.testing.assert_array_equal(again.predict(X), small.predict(X))


def test_the_rule_for_auto():
    choose, much = _memory.choose_n_components, 10**12
    assert choose(5000, 3, memory=much, exact=1e9) is None
    assert choose(5000, 3, memory=10**8, exact=1e9) is not None
    assert choose(5001, 3, memory=much, exact=1e9) == 849 == round(12 * 5001**0.5)
    assert (
        choose(10**6, 3, memory=much) == 2000 == choose(None, 3, memory=much)
    )  # rows of which the number is not known
    assert choose(50, 3, memory=much) == 50  # not more than samples
    for memory in (10**6, 10**8, 10**10):
        for m in (1, 5, 40):
            p = choose(10**6, m, memory=memory)
            assert p == 1 or _memory.feature_bytes(m * p) <= memory / 2 * 1.001


def test_other_words_are_refused():
    X, y = views(30)
    with pytest.raises(ValueError, match="n_components"):
        cs.CoRegularizedRidge(n_components="some").fit(X, y)


# -- predictions
def test_blocks_of_predictions_cover_all_rows_and_fit(monkeypatch):
    for n, n_fit in ((0, 5), (1, 5), (10_000, 100), (10_000, 200_000), (50, 10**9)):
        parts = list(_memory.row_parts(n, n_fit))
        rows = np.concatenate([np.arange(n)[part] for part in parts]) if parts else np.arange(0)
        np.testing.assert_array_equal(rows, np.arange(n))
        assert all(8 * (p.stop - p.start) * n_fit <= 2**28 or p.stop - p.start == 1 for p in parts)
    monkeypatch.setenv("CONSILIENCE_MEMORY", "80MB")
    assert next(_memory.row_parts(4096, 10_000)).stop == 125  # an eighth of the memory


@pytest.mark.parametrize("kind", [cs.CoRegularizedRidge, cs.MaxMarginClassifier, cs.ConsensusRegressor])
def test_predictions_do_not_depend_on_the_blocks(monkeypatch, kind):
    X, y = views(600)
    model = kind()
    model.fit(X, target(model, y))
    whole = model.decision_function(X) if is_classifier(model) else model.predict(X)
    monkeypatch.setattr(_memory, "_BLOCK_BYTES", 8 * 600 * 7)
    parts = model.decision_function(X) if is_classifier(model) else model.predict(X)
    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-12)
