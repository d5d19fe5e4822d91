"""The ranking perceptron: its twin, the classifiers that it equals, structured outputs, streams, refusals."""

import pickle
from collections import Counter
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from online_cases import stream
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import consilience as cs
import reference
from consilience import RankingPerceptron, Views, certificates
from consilience.io import load, save, stored_samples
from consilience.kernels import RBF, FromCallable, Linear, Polynomial, Spectrum, SubsetTree, normalize

AVERAGES = [False, True, "with_last", "voted"]
TAGS = ("a", "b", "c")


def tag_features(words, tags):
    """Counts of words with tags and of tags with the tags before them."""
    return Counter([*zip(words, tags, strict=True), *zip(("", *tags), tags, strict=False)])


def all_tags(words):
    return list(product(TAGS, repeat=len(words)))


def viterbi(weights, words):
    """The best tags by dynamic programming over the weights of `tag_features`."""
    best = {"": (0.0, ())}
    for word in words:
        best = {
            tag: max(
                (
                    (score + weights[before, tag] + weights[word, tag], (*path, tag))
                    for before, (score, path) in best.items()
                ),
                key=lambda pair: pair[0],
            )
            for tag in TAGS
        }
    return max(best.values(), key=lambda pair: pair[0])[1]


def sentences(seed, n, length=4, n_words=12, stay=0.7):
    """Words by hidden tags that depend on the tag before; half of the words are of two tags."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        tags = [int(rng.integers(3))]
        for _ in range(int(rng.integers(1, length))):
            tags.append((tags[-1] + 1) % 3 if rng.random() < stay else int(rng.integers(3)))
        own = [int(rng.integers(n_words // 3)) for _ in tags]
        X.append(tuple(f"w{(3 * w + t) if w % 2 else 3 * w + t % 2}" for w, t in zip(own, tags, strict=True)))
        y.append(tuple(TAGS[t] for t in tags))
    return X, y


def scores_by_class(model, X, n_classes):
    return np.array([[dict(own)[t] for t in range(n_classes)] for own in model.rank(X, top=n_classes)])


def by_class(n_classes, width):
    """φ(x, t) = x ⊗ e_t."""

    def features(x, t):
        phi = np.zeros((n_classes, width))
        phi[t] = x
        return phi.ravel()

    return features


# -- the twin
@pytest.mark.parametrize("seed", range(4))
def test_equals_its_twin_step_by_step(seed):
    X, y = sentences(seed, 40)
    wrong, hypotheses = reference.ranking(zip(X, y, strict=True), tag_features, all_tags)
    assert 5 < wrong.sum() < 40
    for average, expected in (
        (False, hypotheses[-1]),
        (True, reference.mean_weights(hypotheses[:-1])),
        ("with_last", reference.mean_weights(hypotheses)),
    ):
        model = RankingPerceptron(tag_features, candidates=all_tags, average=average).partial_fit(X, y)
        np.testing.assert_array_equal(np.diff(model.error_curve_.prod(axis=1).round(), prepend=0), wrong)
        names = expected.keys() | model.coef_.keys()
        np.testing.assert_allclose(
            [model.coef_.get(n, 0) for n in names], [expected.get(n, 0) for n in names], atol=1e-12
        )
        for words in X[:5]:
            best = max(sum(expected.get(n, 0) * v for n, v in tag_features(words, t).items()) for t in all_tags(words))
            (found, score), *_ = model.rank([words], top=1)[0]
            assert score == pytest.approx(best, abs=1e-9)
            assert model.predict([words])[0] == found == model.predict_one(words)
    voted = RankingPerceptron(tag_features, candidates=all_tags, average="voted").partial_fit(X, y)
    for words in X[:8]:
        shares = reference.ranking_votes(hypotheses, wrong, words, tag_features, all_tags)
        assert dict(voted.rank([words], top=99)[0]) == pytest.approx(shares)


# -- the classifiers are special cases
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_a_vector_for_each_class_is_the_perceptron_of_several_classes(n_classes, whole, average):
    X, y = stream(n_classes, n=60, widths=(4,), n_classes=n_classes, whole=whole)
    A = X["v0"]
    known = cs.OnlinePerceptron(fit_intercept=False, average=average).partial_fit(X, y, classes=range(n_classes))
    features = by_class(n_classes, 4)
    equal = [
        (RankingPerceptron(features, candidates=range(n_classes), average=average), A),
        (
            RankingPerceptron(
                lambda x, t: sp.csr_array(features(x, t)[None]), candidates=range(n_classes), average=average
            ),
            A,
        ),
        (
            RankingPerceptron(
                lambda x, t: {(t, j): v for j, v in enumerate(x)}, candidates=range(n_classes), average=average
            ),
            A,
        ),
        (
            RankingPerceptron(
                lambda x, t: features(x["v0"], t), candidates=lambda x: range(n_classes), average=average
            ),
            X,
        ),
        (RankingPerceptron(joint_kernel=(Linear(), None), candidates=range(n_classes), average=average), X),
        (
            RankingPerceptron(
                joint_kernel=lambda p, q: p[0] @ q[0] * (p[1] == q[1]), candidates=range(n_classes), average=average
            ),
            A,
        ),
    ]
    for model, data in equal:
        model.partial_fit(data, y)
        assert (model.n_mistakes_, model.n_updates_) == (known.n_mistakes_, known.n_updates_)
        if not average:  # a ranking counts the mistakes of the last hypothesis
            np.testing.assert_array_equal(model.error_curve_, known.error_curve_)
        np.testing.assert_allclose(scores_by_class(model, data, n_classes), known.decision_function(X), atol=1e-10)
        if not whole:  # whole numbers tie, up to rounding
            np.testing.assert_array_equal(model.predict(data), known.predict(X))
    if average != "voted":
        np.testing.assert_allclose(equal[0][0].coef_.reshape(n_classes, 4).T, known.coef_["v0"], atol=1e-12)
    plain = RankingPerceptron(average=average).partial_fit(X, y, classes=range(n_classes))
    np.testing.assert_array_equal(plain.decision_function(X), known.decision_function(X))
    np.testing.assert_allclose(scores_by_class(plain, X, n_classes), known.decision_function(X), atol=1e-12)


@pytest.mark.parametrize("average", AVERAGES)
def test_signs_are_the_perceptron_of_two_classes(average):
    """φ(x, t) = t x / 2: the lead of a class is t <w, x>, and a step adds y x."""
    X, y = stream(1, n=120, widths=(5,))
    known = cs.OnlinePerceptron(fit_intercept=False, average=average).partial_fit(X, y, classes=[0, 1])
    model = RankingPerceptron(lambda x, t: t * x / 2, candidates=[-1, 1], average=average).partial_fit(
        X["v0"], 2 * y - 1
    )
    assert model.n_mistakes_ == known.n_mistakes_
    if average != "voted":
        np.testing.assert_allclose(model.coef_, known.coef_["v0"], atol=1e-12)
    np.testing.assert_array_equal(model.predict(X["v0"]) > 0, known.predict(X) == 1)
    plain = RankingPerceptron(average=average).partial_fit(X, y, classes=[0, 1])
    for (first, high), (second, low) in plain.rank(X[:6]):
        assert {first, second} == {0, 1}
        assert high == -low >= 0


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("kernel", [Linear(), RBF(0.3)], ids=str)
def test_a_product_of_kernels_is_the_kernel_perceptron_with_an_output_kernel(kernel, average):
    X, y = stream(7, n=130, widths=(3, 2), n_classes=4, missing=True)
    psi = np.random.default_rng(0).normal(size=(4, 3))
    table = psi @ psi.T
    outputs = FromCallable(lambda s, t: table[np.ix_(s[:, 0].astype(int), t[:, 0].astype(int))])
    known = cs.KernelPerceptron(kernel, output_kernel=table, average=average).partial_fit(X, y, classes=range(4))
    model = RankingPerceptron(joint_kernel=(kernel, outputs), candidates=range(4), average=average).partial_fit(X, y)
    assert (model.n_mistakes_, model.n_updates_) == (known.n_mistakes_, known.n_updates_)
    np.testing.assert_allclose(scores_by_class(model, X, 4), known.decision_function(X), atol=1e-9)
    passes = {"max_iter": 3, "random_state": 0}
    known = clone(known).set_params(**passes).fit(X, y)
    model = clone(model).set_params(**passes).fit(X, y)
    assert model.n_mistakes_ == known.n_mistakes_
    assert {i for i, _ in model.support_} == set(known.support_.tolist())
    np.testing.assert_allclose(scores_by_class(model, X, 4), known.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("average", AVERAGES)
def test_features_are_their_kernel(average):
    X, y = sentences(3, 25, length=3)
    counts = {(x, t): tag_features(x, t) for x in X for t in all_tags(x)}

    def joint(p, q):
        right = counts[q]
        return float(sum(value * right[name] for name, value in counts[p].items()))

    primal = RankingPerceptron(tag_features, candidates=all_tags, average=average, max_iter=2, shuffle=False).fit(X, y)
    dual = clone(primal).set_params(features=None, joint_kernel=joint).fit(X, y)
    assert primal.n_mistakes_ == dual.n_mistakes_
    assert len(dual.support_) == len(dual.dual_coef_) == len(set(dual.support_))
    for words in X[:10]:
        one, other = (dict(model.rank([words], top=99)[0]) for model in (primal, dual))
        assert one == pytest.approx(other, abs=1e-9)
    ours, theirs = primal.certificate(X, y), dual.certificate(X, y)
    assert ours.size == pytest.approx(theirs.size)
    assert ours.n_mistakes <= ours.bound <= theirs.bound * (1 + 1e-9)  # more comparators are tried


def test_exclusive_or_needs_a_quadratic_kernel():
    X, y = np.array([[-1.0, -1], [-1, 1], [1, -1], [1, 1]]), ["no", "yes", "yes", "no"]
    quadratic = RankingPerceptron(joint_kernel=(Polynomial(2), None), max_iter=100, random_state=0).fit(X, y)
    assert quadratic.converged_
    assert quadratic.predict(X).tolist() == y
    linear = clone(quadratic).set_params(joint_kernel=("linear", None)).fit(X, y)
    assert not linear.converged_
    named = RankingPerceptron(lambda x, t: {("product", t): x[0] * x[1]}, max_iter=100, random_state=0).fit(X, y)
    assert named.predict(X).tolist() == y
    assert named.coef_["product", "yes"] < 0 < named.coef_["product", "no"]


# -- structured outputs
@pytest.mark.parametrize("average", [False, True, "with_last"])
def test_a_search_learns_what_candidates_learn(average):
    """A search breaks ties as it likes; features of real numbers have none but at the first sample."""
    X, y = sentences(5, 60)
    first = next(i for i, tags in enumerate(y) if tags != all_tags(X[i])[0])
    X, y = X[first:], y[first:]
    names = sorted({name for words in X for tags in all_tags(words) for name in tag_features(words, tags)})
    values = dict(zip(names, np.random.default_rng(0).normal(size=len(names)), strict=True))

    def features(words, tags):
        return {name: count * values[name] for name, count in tag_features(words, tags).items()}

    def decode(weights, words):
        return max(all_tags(words), key=lambda tags: sum(weights[n] * v for n, v in features(words, tags).items()))

    common = {"average": average, "max_iter": 2, "shuffle": False}
    searched = RankingPerceptron(features, decode=decode, **common).fit(X, y)
    listed = RankingPerceptron(features, candidates=all_tags, **common).fit(X, y)
    assert 10 < searched.n_mistakes_ == listed.n_mistakes_
    assert {n: w for n, w in listed.coef_.items() if w} == pytest.approx({n: w for n, w in searched.coef_.items() if w})
    assert searched.predict(X).tolist() == listed.predict(X).tolist()
    vectors = {name: place for place, name in enumerate(names)}  # the same by position

    def as_vector(words, tags):
        phi = np.zeros(len(names))
        for name, value in features(words, tags).items():
            phi[vectors[name]] = value
        return phi

    def decode_vector(weights, words):
        return max(all_tags(words), key=lambda tags: as_vector(words, tags) @ weights)

    by_place = RankingPerceptron(as_vector, decode=decode_vector, **common).fit(X, y)
    assert by_place.n_mistakes_ == searched.n_mistakes_
    np.testing.assert_allclose(by_place.coef_, [searched.coef_.get(name, 0) for name in names], atol=1e-9)


def test_a_tagger_by_viterbi_beats_words_one_by_one():
    X, y = sentences(0, 400, length=9)
    Z, z = sentences(1, 200, length=9)
    tagger = RankingPerceptron(tag_features, decode=viterbi, average=True, max_iter=5, random_state=0).fit(X, y)
    words, tags = ([w for own in data for w in own] for data in (X, y))
    alone = RankingPerceptron(
        lambda word, tag: {(word, tag): 1.0}, candidates=TAGS, average=True, max_iter=5, random_state=0
    )
    alone.fit(words, tags)

    def share(predicted):
        return np.mean([a == b for p, t in zip(predicted, z, strict=True) for a, b in zip(p, t, strict=True)])

    by_word = [alone.predict(list(own)) for own in Z]
    assert share(tagger.predict(Z)) > share(by_word) + 0.05
    assert tagger.score(Z, z) == np.mean([p == t for p, t in zip(tagger.predict(Z), z, strict=True)])
    assert tagger.score(Z, [list(own) for own in z]) == tagger.score(Z, z)  # lists and tuples are equal
    short = [words for words in Z if len(words) <= 4]
    scores = tagger.coef_
    for words, found in zip(short, tagger.predict(short), strict=True):  # the search is exact
        best = max(
            all_tags(words), key=lambda tags: sum(scores.get(n, 0) * v for n, v in tag_features(words, tags).items())
        )
        total = [sum(scores.get(n, 0) * v for n, v in tag_features(words, t).items()) for t in (best, found)]
        assert total[0] == pytest.approx(total[1])


def parses(seed, n):
    """Sentences with three trees each: the true one has the verb phrase where its preposition asks for it."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        verb, noun = rng.choice(["saw", "ate", "met"]), rng.choice(["man", "dog", "cake"])
        low = rng.random() < 0.5
        word = "of" if low else "with"
        pp = f"(PP (P {word}) (NP her))"
        trees = [
            f"(S (NP I) (VP (V {verb}) (NP (N {noun}) {pp})))",
            f"(S (NP I) (VP (V {verb}) (NP (N {noun})) {pp}))",
            f"(S (NP (NP I) {pp}) (VP (V {verb}) (NP (N {noun}))))",
        ]
        X.append(trees)
        y.append(trees[0 if low else 1])
    return X, y


@pytest.mark.parametrize("average", AVERAGES)
def test_trees_are_reranked_by_a_tree_kernel(average):
    X, y = parses(0, 40)
    kernel = normalize(SubsetTree(0.5))
    model = RankingPerceptron(joint_kernel=(None, kernel), candidates=list, average=average, random_state=0).fit(X, y)
    assert model.score(*parses(1, 30)) == 1.0
    explicit = RankingPerceptron(
        joint_kernel=lambda p, q: float(kernel([p[1]], [q[1]])[0, 0]), candidates=list, average=average, random_state=0
    ).fit(X[:10], y[:10])
    same = clone(model).fit(X[:10], y[:10])
    assert explicit.n_mistakes_ == same.n_mistakes_
    assert [t for t, _ in explicit.rank(X[:10], top=3)[3]] == [t for t, _ in same.rank(X[:10], top=3)[3]]
    proof = model.certificate(X, y)
    assert proof.n_mistakes <= proof.bound < proof.n_samples


def test_strings_are_predicted_by_a_kernel_between_them():
    X = np.array([[0.0], [0.1], [1.0], [1.1]])
    words = ["anna", "hanna", "otto", "ottokar"]
    model = RankingPerceptron(joint_kernel=(RBF(1.0), normalize(Spectrum(2))), max_iter=500, random_state=0).fit(
        X, words
    )
    assert model.candidates_ == words
    assert model.converged_
    assert model.predict([[0.0], [1.1]]).tolist() == ["anna", "ottokar"]


# -- streams
FORMS = {
    "features": (RankingPerceptron(tag_features, candidates=all_tags), None),
    "search": (RankingPerceptron(tag_features, decode=viterbi), None),
    "seen outputs": (RankingPerceptron(lambda x, t: dict.fromkeys(zip(x, t, strict=False), 1.0)), None),
    "outputs by a kernel": (RankingPerceptron(joint_kernel=(None, Spectrum(1)), candidates=all_tags), None),
    "a function": (
        RankingPerceptron(joint_kernel=lambda p, q: float(p[0] == q[0] and p[1] == q[1]), candidates=all_tags),
        None,
    ),
    "product": (RankingPerceptron(joint_kernel=(Spectrum(1), Spectrum(1))), "views"),
}


def form_of(name, X):
    return Views(words=[list(words) for words in X]) if FORMS[name][1] == "views" else X


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("name", FORMS)
def test_the_state_does_not_depend_on_how_a_stream_is_cut(name, average):
    if name == "search" and average == "voted":
        return
    X, y = sentences(2, 45)
    data = form_of(name, X)
    y = [None if i % 7 == 3 else tags for i, tags in enumerate(y)]
    once = clone(FORMS[name][0]).set_params(average=average).partial_fit(data, y)
    assert once.n_samples_seen_ == sum(tags is not None for tags in y)
    for size in (1, 8):
        parts = clone(once)
        for start in range(0, len(y), size):
            parts.partial_fit(data[start : start + size], y[start : start + size])
        same_ranking(once, parts, data)
    one = clone(once)
    rows = [{"words": list(words)} for words in X] if name == "product" else X
    assert one.predict_one(rows[0]) is None
    for x, tags in zip(rows, y, strict=True):
        if tags is not None:
            one.learn_one(x, tags)
    same_ranking(once, one, data)
    assert once.predict_one(rows[4]) == once.predict(data)[4]
    same_ranking(once, pickle.loads(pickle.dumps(once)) if "lambda" not in repr(once) else once, data)


def same_ranking(one, other, data):
    for count in ("n_mistakes_", "n_updates_", "n_samples_seen_"):
        assert getattr(one, count) == getattr(other, count)
    np.testing.assert_array_equal(one.error_curve_, other.error_curve_)
    if one.decode is not None:
        assert one.coef_ == pytest.approx(other.coef_)
        return
    for left, right in zip(one.rank(data, top=99), other.rank(data, top=99), strict=True):
        assert dict(left) == pytest.approx(dict(right), abs=1e-9)


def test_an_output_that_is_new_joins_and_counts_as_a_mistake():
    model = RankingPerceptron(lambda x, t: {(w, t): 1.0 for w in x})
    for words, label in ((["a"], "x"), (["a"], "x"), (["b"], "y"), (["b"], "y"), (["c"], "w"), (["a"], "x")):
        model.learn_one(words, label)
    assert model.candidates_ == ["w", "x", "y"]
    assert model.n_mistakes_ == 4  # each output at first, and "x" again: nothing was learned while it was alone
    assert model.predict([["a"], ["b"], ["c"]]).tolist() == ["x", "y", "w"]
    mixed = RankingPerceptron(lambda x, t: {(x, t): 1.0}).partial_fit(["p", "q"], ["x", 1])
    assert mixed.candidates_ == ["x", 1]


@pytest.mark.parametrize("name", FORMS)
def test_a_refused_chunk_changes_nothing(name):
    X, y = sentences(2, 20)
    data = form_of(name, X)
    model = clone(FORMS[name][0]).partial_fit(data, y)
    before = pickle.dumps([model.n_mistakes_, model.n_updates_, model.n_samples_seen_])
    scores = [model.predict(data).tolist(), model.error_curve_.tolist()]

    class Unlike:
        __hash__ = None

    with pytest.raises((TypeError, ValueError)):
        model.partial_fit(data, [*y[:-1], [Unlike()]])
    assert pickle.dumps([model.n_mistakes_, model.n_updates_, model.n_samples_seen_]) == before
    assert [model.predict(data).tolist(), model.error_curve_.tolist()] == scores


# -- proof
def test_the_bound_holds_and_is_novikoffs_where_outputs_are_separated():
    held = []
    for seed in range(20):
        X, y = sentences(seed, 50, length=3)
        model = RankingPerceptron(tag_features, candidates=all_tags, average=bool(seed % 2), random_state=seed)
        proof = model.fit(X, y).certificate(X, y) if seed % 3 else model.partial_fit(X, y).certificate(X, y)
        held.append(proof.n_mistakes <= proof.bound)
        assert proof.bound <= proof.n_samples
        u = {name: float(np.random.default_rng(seed).normal()) for name in model.coef_}
        other = model.certificate(X, y, comparator=u)
        held.append(other.n_mistakes <= other.bound)
    assert all(held)
    X, y = [("a",), ("b",), ("c",)] * 20, [("a",), ("b",), ("c",)] * 20
    easy = RankingPerceptron(tag_features, candidates=all_tags, max_iter=50, shuffle=False).fit(X, y)
    assert easy.converged_
    proof, w = easy.certificate(X, y), easy.coef_
    leads = [
        min(
            sum(w.get(n, 0) * v for n, v in tag_features(x, t).items())
            - max(sum(w.get(n, 0) * v for n, v in tag_features(x, r).items()) for r in all_tags(x) if r != t)
            for x, t in zip(X, y, strict=True)
        )
    ]
    margin = leads[0] / np.sqrt(sum(v**2 for v in w.values()))
    assert easy.n_mistakes_ <= proof.bound <= certificates.novikoff_bound(proof.size, margin) * 1.2
    assert "mistakes in" in str(proof)
    with pytest.raises(ValueError, match="learned 120 samples, and 7 are given"):
        easy.certificate(X[:7], y[:7])


def test_a_kernel_that_is_not_definite_has_no_bound():
    X, y = sentences(0, 30)
    model = RankingPerceptron(joint_kernel=lambda p, q: -float(p[1] == q[1]), candidates=all_tags).partial_fit(X, y)
    assert model.certificate(X, y).bound is None


# -- scikit-learn, files
def test_scikit_learns_tools_take_sequences():
    X, y = sentences(0, 60)
    model = RankingPerceptron(tag_features, decode=viterbi, random_state=0)
    assert cross_val_score(model, X, y, cv=3).shape == (3,)
    search = GridSearchCV(model, {"average": [False, True, "with_last"], "max_iter": [1, 3]}, cv=2, error_score="raise")
    assert search.fit(X, y).best_score_ > 0.3
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.features is tag_features
    fitted = pickle.loads(pickle.dumps(model.fit(X, y)))
    assert fitted.coef_ == model.coef_
    assert fitted.partial_fit(X, y).n_mistakes_ == model.partial_fit(X, y).n_mistakes_


def test_kernels_are_saved_and_functions_are_refused(tmp_path):
    X, y = parses(0, 20)
    pairs = [t for own in X for t in own]
    trees = RankingPerceptron(joint_kernel=(None, SubsetTree(0.5)), candidates=sorted(set(pairs)), random_state=0)
    words = Views(words=[list(own) for own in sentences(0, 20)[0]])
    models = [
        (trees.fit(X, y), X, y),
        (
            RankingPerceptron(joint_kernel=(Spectrum(1), Spectrum(1)), average="voted").fit(words, sentences(0, 20)[1]),
            words,
            sentences(0, 20)[1],
        ),
        (
            RankingPerceptron(joint_kernel=(RBF("scale"), RBF("scale"))).fit(np.eye(4), [1.0, 2.0, 3.0, 4.0]),
            np.eye(4),
            [1.0, 2.0, 3.0, 4.0],
        ),
    ]
    for model, data, outputs in models:
        save(model, tmp_path / "m")
        again = load(tmp_path / "m")
        same_ranking(model, again, data)
        same_ranking(model.partial_fit(data, outputs), again.partial_fit(data, outputs), data)
        assert sum(stored_samples(model).values()) > 0
        with pytest.raises(ValueError, match="predicts from"):
            cs.shareable(model)
    model = RankingPerceptron(tag_features, candidates=all_tags, average="voted").fit(*sentences(0, 20))
    with pytest.raises(
        TypeError, match=r"Not saved: RankingPerceptron holds .*tag_features.* replace functions of your"
    ):
        save(model, tmp_path / "m")
    names = [f"{function.__module__}.{function.__name__}" for function in (tag_features, all_tags)]
    save(model, tmp_path / "m", trusted=names)
    same_ranking(model, load(tmp_path / "m", trusted=names), sentences(0, 20)[0])


# -- refusals, in sentences
def fit(X=(("w",),), y=(("a",),), **parameters):
    return lambda: RankingPerceptron(**parameters).fit(list(X), list(y))


REFUSED = {
    "both": (fit(features=tag_features, joint_kernel=(None, RBF())), "both say what φ is"),
    "one kernel": (fit(joint_kernel=RBF(1.0)), r"Say which: give \(k, None\) for samples"),
    "no kernels": (fit(joint_kernel=(None, None)), "one of which may be None"),
    "candidates alone": (fit(candidates=["a"]), "Without them outputs are classes"),
    "a search without features": (
        fit(joint_kernel=(None, RBF()), decode=viterbi),
        "It needs these, and no `candidates`",
    ),
    "a vote of searches": (fit(features=tag_features, decode=viterbi, average="voted"), "Use average=True, its usual"),
    "no candidate": (fit(features=tag_features, candidates=lambda x: []), r"`candidates\(\('w',\)\)` has no output"),
    "candidates twice": (fit(features=tag_features, candidates=[("a",), ["a"]]), "has the same output twice"),
    "not a candidate": (
        fit(features=tag_features, candidates=[("b",)]),
        r"The output \('a',\) of a sample is not among its 1",
    ),
    "not the best": (
        lambda: RankingPerceptron(tag_features, decode=lambda w, x: ("b",), shuffle=False).fit(
            [("w",)] * 2, [("a",)] * 2
        ),
        "must return the output whose features have the largest score",
    ),
    "another average": (fit(features=tag_features, average="all"), "'average' parameter of RankingPerceptron must be"),
    "NaN": (fit(features=lambda x, t: {"a": np.nan}, candidates=all_tags), "returned NaN, infinity"),
    "text": (fit(features=lambda x, t: {"a": "b"}, candidates=all_tags), "is not a number"),
    "nothing": (fit(features=lambda x, t: None, candidates=all_tags), "must return a dict of names and numbers"),
    "two kinds": (
        fit(features=lambda x, t: {"a": 1.0} if t == ("a",) else [1.0], candidates=all_tags),
        "Return one kind",
    ),
    "two widths": (
        fit(features=lambda x, t: [1.0] * (1 + (t == ("a",))), candidates=all_tags),
        "Return the same columns",
    ),
    "no output": (fit(y=[None], features=tag_features), "y has no output at all"),
    "lengths": (fit(y=[("a",)] * 2, features=tag_features), "X has 1, y has 2"),
    "one string": (lambda: RankingPerceptron(tag_features).fit("words", ["a"]), "X must be a sequence"),
    "classes": (
        lambda: RankingPerceptron(tag_features).partial_fit([("w",)], [("a",)], classes=[1]),
        "by `candidates`",
    ),
    "a stream's kernel": (
        lambda: RankingPerceptron(joint_kernel=(None, RBF())).partial_fit([0.0], [1.0]),
        "takes a parameter from the data",
    ),
    "a ranking of a search": (
        lambda: RankingPerceptron(tag_features, decode=viterbi).fit([("w",)], [("a",)]).rank([("w",)]),
        "not a ranking",
    ),
    "the proof of a search": (
        lambda: RankingPerceptron(tag_features, decode=viterbi).fit([("w",)], [("a",)]).certificate([("w",)], [("a",)]),
        "second best output",
    ),
    "another φ": (
        lambda: (
            RankingPerceptron(tag_features, candidates=all_tags)
            .fit([("w",)], [("a",)])
            .set_params(features=None, joint_kernel=(None, Spectrum(1)))
            .predict([("w",)])
        ),
        "say another φ than",
    ),
    "an unknown feature": (
        lambda: (
            RankingPerceptron(tag_features, candidates=all_tags)
            .fit([("w",)], [("a",)])
            .certificate([("w",)], [("a",)], comparator={"z": 1.0})
        ),
        "names the feature 'z'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_in_a_sentence(name):
    call, sentence = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=sentence):
        call()


def test_scores_by_class_are_for_classes():
    model = RankingPerceptron(tag_features, candidates=all_tags).fit([("w",)], [("a",)])
    assert not hasattr(model, "decision_function")
    with pytest.raises(AttributeError) as caught:
        _ = model.decision_function
    assert "`rank` returns candidates" in str(caught.value.__cause__)
    for name in ("support_", "dual_coef_"):
        with pytest.raises(AttributeError, match="has `coef_` with these parameters"):
            getattr(model, name)
    assert hasattr(RankingPerceptron(), "decision_function")


def test_unknown_features_weigh_nothing_and_one_candidate_is_never_wrong():
    model = RankingPerceptron(tag_features, candidates=all_tags).fit([("w",)] * 3, [("a",)] * 3)
    assert dict(model.rank([("unseen",)])[0]).keys() == {("a",), ("b",), ("c",)}
    alone = RankingPerceptron(tag_features, candidates=lambda x: [("a",)]).fit([("w",)] * 3, [("a",)] * 3)
    assert (alone.n_mistakes_, alone.converged_) == (0, True)
    assert alone.certificate([("w",)] * 3, [("a",)] * 3).bound == 0.0
