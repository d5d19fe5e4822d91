"""Kernels on strings, token sequences and trees."""

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

import reference
from consilience.kernels import Linear, Spectrum, Subsequence, SubsetTree, is_psd, normalize
from strategies import among, texts, trees, two_sets, whole, write_tree

STRINGS = ["anna", "hanna", "hannah", "otto", "ottokar", "karotte", "", "a", "anna", "ab" * 20]
SENTENCES = [tuple(text.split()) for text in ("the cat sat on the mat", "the cat ran", "a cat", "", "the mat the mat")]
TREES = [
    "(S (NP I) (VP (V ran)))",
    "(S (NP we) (VP (V ran)))",
    "(S (NP I) (VP (V saw) (NP them)))",
    "(S (NP (D the) (N dog)) (VP (V saw) (NP (D the) (N cat))))",
    "(NP dogs cats)",
    "(S (NP I) (VP (V ran)))",
    "(S)",
    "",
]
CASES = [
    *((kernel, data) for kernel in (Spectrum(1), Spectrum(2), Spectrum(5)) for data in (STRINGS, SENTENCES)),
    *((Subsequence(n, decay), data) for n, decay in ((1, 0.5), (2, 0.5), (4, 1.0)) for data in (STRINGS, SENTENCES)),
    *((SubsetTree(decay), TREES) for decay in (0.4, 1.0)),
]


def chain(depth):
    return "(S " * depth + "x" + ")" * depth


# -- naive twins
@settings(max_examples=60, deadline=None)
@given(two_sets(texts), whole(1, 5), among(0.3, 0.5, 1.0))
def test_strings_equal_counting_and_enumeration(data, length, decay):
    expected = reference.gram(lambda s, t: reference.spectrum(s, t, length), *data)
    np.testing.assert_array_equal(Spectrum(length)(*data), expected)
    expected = reference.gram(lambda s, t: reference.subsequence(s, t, length, decay), *data)
    np.testing.assert_allclose(Subsequence(length, decay)(*data), expected, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(two_sets(trees), among(0.4, 1.0))
def test_trees_equal_recursion_as_tuples_and_as_bracketed_strings(data, decay):
    expected = reference.gram(lambda s, t: reference.subset_tree(s, t, decay), *data)
    np.testing.assert_allclose(SubsetTree(decay)(*data), expected, rtol=1e-12)
    X, _ = data
    written = [write_tree(tree) for tree in X]
    np.testing.assert_array_equal(SubsetTree()(X), SubsetTree()(written))
    np.testing.assert_allclose(SubsetTree()(X, written), SubsetTree()(X), rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(trees, trees)
def test_subset_tree_without_decay_counts_common_fragments(s, t):
    assert SubsetTree(1.0)([s], [t])[0, 0] == reference.common_fragments(s, t)


def test_large_samples_in_threads_equal_the_twins():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), 14)) for _ in range(100)]
    some = [3, 60]
    gram = Subsequence(3, 0.7)(words)
    expected = reference.gram(lambda s, t: reference.subsequence(s, t, 3, 0.7), [words[i] for i in some], words)
    np.testing.assert_allclose(gram[some], expected, rtol=1e-12)
    parses = [grown(rng, 60) for _ in range(30)]
    expected = reference.gram(lambda s, t: reference.subset_tree(s, t, 0.4), [parses[i] for i in (0, 20)], parses)
    np.testing.assert_allclose(SubsetTree()(parses)[[0, 20]], expected, rtol=1e-12)


def grown(rng, n_nodes):
    """A random tree of about so many nodes and few productions."""
    if n_nodes < 3:
        return ("N", str(rng.choice(["x", "y"])))
    left = int(rng.integers(1, n_nodes - 1))
    return (str(rng.choice(["S", "P"])), grown(rng, left), grown(rng, n_nodes - 1 - left))


# -- published values and special cases
@pytest.mark.parametrize("decay", [0.3, 0.5, 1.0])
def test_values_of_lodhi_2002(decay):
    words = ["cat", "car", "bat", "bar"]
    off = decay**4
    expected = np.array([[0, off, off, 0], [off, 0, 0, off], [off, 0, 0, off], [0, off, off, 0]])
    np.fill_diagonal(expected, 2 * decay**4 + decay**6)
    np.testing.assert_allclose(Subsequence(2, decay)(words), expected, rtol=1e-14)
    np.testing.assert_allclose(normalize(Subsequence(2, decay))(["cat"], ["car"]), [[1 / (2 + decay**2)]], rtol=1e-14)


def test_collins_duffy_2001_counts_subtrees_of_a_noun_phrase():
    tree = "(NP (D the) (N apple))"  # its fragments: NP with D and N cut or kept (4), D, N
    assert SubsetTree(1.0)([tree])[0, 0] == 6
    assert SubsetTree(0.5).diag([tree])[0] == 0.5 * 1.5**2 + 2 * 0.5
    assert SubsetTree()(["(S NP)"], ["(S (NP))"])[0, 0] == 0, "a leaf differs from a node of the same label"
    assert SubsetTree()(["(S (NP a) b)"], ["(S a (NP b))"])[0, 0] == 0
    assert SubsetTree()(["(S (NP) NP)"], ["(S (NP) NP)"])[0, 0] == pytest.approx(0.4 * 1.4 + 0.4)


def test_spectrum_equals_linear_on_counts_dense_or_sparse_and_subsequences_of_length_one():
    words = [word for word in STRINGS if word]
    counts = CountVectorizer(analyzer="char", ngram_range=(2, 2), lowercase=False).fit_transform(words)
    np.testing.assert_array_equal(Spectrum(2)(words), Linear()(counts))
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 12)) for _ in range(60)]
    np.testing.assert_array_equal(Spectrum(3)(words)[:2, :2], Spectrum(3)(words[:2]))
    np.testing.assert_allclose(Subsequence(1, 0.5)(STRINGS), 0.25 * Spectrum(1)(STRINGS))


@pytest.mark.parametrize("length", [4, 7, 20, 31])
def test_spectrum_of_long_substrings_and_many_symbols(length):
    rng = np.random.default_rng(0)
    words = ["".join(map(chr, rng.integers(0x10FF00, 0x10FFFF, 30))) for _ in range(3)]
    words += [words[0][5:], words[1] + words[2]]
    expected = reference.gram(lambda s, t: reference.spectrum(s, t, length), words, words)
    np.testing.assert_array_equal(Spectrum(length)(words), expected)


@pytest.mark.parametrize("kernel", [Spectrum(2), Subsequence(2)])
def test_tokens_equal_characters_and_may_be_numbers_and_characters_of_any_plane(kernel):
    expected = kernel(STRINGS)
    for form in (tuple, list):
        np.testing.assert_array_equal(kernel([form(word) for word in STRINGS]), expected)
        np.testing.assert_allclose(kernel([form(word) for word in STRINGS], STRINGS), expected)
    plain = kernel(["abba", "ab"])
    np.testing.assert_array_equal(kernel(["\U0001f600\u00e9\u00e9\U0001f600", "\U0001f600\u00e9"]), plain)
    np.testing.assert_array_equal(kernel(["\ud800\u0000\u0000\ud800", "\ud800\u0000"]), plain)
    numbers = np.empty(2, dtype=object)
    numbers[:] = [(1, 2, 2, 1), (1, 2)]
    np.testing.assert_array_equal(kernel(numbers), plain)


def test_deep_trees():
    depth, decay = 3_000, 0.5  # beyond Python's limit of recursion
    nested = "x"
    for _ in range(depth):
        nested = ("S", nested)
    kernel = SubsetTree(decay)
    expected = decay + decay * (1 + decay) + (depth - 2) * decay  # leaf productions; the nodes above them; all others
    np.testing.assert_allclose(kernel([nested], [chain(1), chain(2), "(A x)"]), [[decay, expected, 0]])
    assert kernel([nested], [chain(depth)])[0, 0] == pytest.approx(kernel.diag([nested])[0])


# -- properties
@pytest.mark.parametrize(("kernel", "data"), CASES, ids=str)
def test_properties_of_every_kernel(kernel, data):
    gram, cut = kernel(data), len(data) // 2
    assert gram.dtype == np.float64
    np.testing.assert_array_equal(gram, gram.T)
    assert is_psd(gram)
    np.testing.assert_allclose(kernel.diag(data), np.diag(gram), rtol=1e-14)
    np.testing.assert_allclose(kernel(data[:cut], data[cut:]), gram[:cut, cut:], rtol=1e-14)
    np.testing.assert_allclose(kernel(data, data), gram, rtol=1e-14)
    shapes = kernel(data[:1]), kernel([]), kernel([], data), kernel(data, []), kernel.diag([])
    assert [part.shape for part in shapes] == [(1, 1), (0, 0), (0, len(data)), (len(data), 0), (0,)]
    np.testing.assert_allclose(np.diag(normalize(kernel)(data)), np.diag(gram) > 0, rtol=1e-14)
    np.testing.assert_allclose((0.5 * kernel + kernel**2 + 1.0)(data), 0.5 * gram + gram**2 + 1.0)
    assert repr(clone(kernel)) == repr(kernel)
    assert clone(kernel).get_params() == kernel.get_params()
    np.testing.assert_array_equal(eval(repr(kernel))(data), gram)


# -- errors
LABEL = "expected a label, a string, as first entry of every tuple, got "
UNREADABLE = {
    "(S (NP I)": "expected 1 more ')' at character 9, got the end of the text.",
    "(S (NP I": "expected 2 more ')' at character 8, got the end of the text.",
    "(S a))": "expected the end of the tree at character 5, got ')'.",
    "(S a) (S b)": "expected the end of the tree at character 6, got '(S'.",
    "(S a) b": "expected the end of the tree at character 6, got 'b'.",
    "( (S a))": "expected a label after '(' at character 2, got '(S'.",
    "(S ())": "expected a label after '(' at character 4, got '))'.",
    "(": "expected a label after '(' at character 1, got the end of the text.",
    " word": "expected '(' at character 1, got 'word'.",
    ")": "expected '(' at character 0, got ')'.",
    ("S", ()): LABEL + "nothing.",
    ("", "a"): LABEL + "nothing.",
    (("S", "a"), "a"): LABEL + "tuple.",
    ("S", 3): "expected a string or a tuple as child of a node, got int.",
}


@pytest.mark.parametrize("tree", UNREADABLE)
def test_unreadable_trees(tree):
    example = " Write a tree as '(S (NP I) (VP (V ran)))'." if isinstance(tree, str) else ""
    for call in (SubsetTree(), SubsetTree().diag):
        with pytest.raises(TypeError if tree == ("S", 3) else ValueError) as caught:
            call(["(S a)", tree])
        assert str(caught.value) == f"Sample 1 of X: {UNREADABLE[tree]}{example}"


LENGTH = "`length`, the number of symbols, must be an integer of at least 1."
DECAY = "`decay` must be a number greater than 0 and at most 1."
NO_SEQUENCE = "must be a string or a sequence of tokens; got {}. Convert other collections to lists."
NO_TREE = "must be a tree as a bracketed string or nested tuples; got {}."
UNHASHABLE = "has a token of type list; tokens must be hashable, such as words. Convert lists to tuples."
SEQUENCES = "strings or sequences of tokens (numeric tokens as a 1-D array of objects)"
DENSE = "{} takes {}; got dense numeric data for {}."


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [
        (ValueError, lambda: Spectrum(0)(STRINGS), "Spectrum(length=0): " + LENGTH),
        (ValueError, lambda: Subsequence(1.5)(STRINGS), "Subsequence(length=1.5, decay=0.5): " + LENGTH),
        (ValueError, lambda: Subsequence(2, 0.0)(STRINGS), "Subsequence(length=2, decay=0.0): " + DECAY),
        (ValueError, lambda: Subsequence(2, 1.5)(STRINGS), "Subsequence(length=2, decay=1.5): " + DECAY),
        (ValueError, lambda: SubsetTree("much").diag(TREES), "SubsetTree(decay='much'): " + DECAY),
        (TypeError, lambda: Spectrum()(["abc", 3]), "Sample 1 of X " + NO_SEQUENCE.format("int")),
        (TypeError, lambda: Subsequence()(["abc"], ["b", "d", {"a"}]), "Sample 2 of Y " + NO_SEQUENCE.format("set")),
        (TypeError, lambda: Spectrum()([["a", ["b"]]]), "Sample 0 of X " + UNHASHABLE),
        (TypeError, lambda: SubsetTree()(["(S a)", 3]), "Sample 1 of X " + NO_TREE.format("int")),
        (TypeError, lambda: SubsetTree()(["(S a)"], [["S", "a"]]), "Sample 0 of Y " + NO_TREE.format("list")),
        (TypeError, lambda: Spectrum()(np.eye(2)), DENSE.format("Spectrum(length=3)", SEQUENCES, "X")),
        (TypeError, lambda: Spectrum(1)(["a"], [1.0]), DENSE.format("Spectrum(length=1)", SEQUENCES, "Y")),
        (
            TypeError,
            lambda: SubsetTree()([1.0]),
            DENSE.format("SubsetTree(decay=0.4)", "trees as bracketed strings or nested tuples", "X"),
        ),
    ],
)
def test_parameters_out_of_range_and_samples_of_the_wrong_kind(error, call, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
