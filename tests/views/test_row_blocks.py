"""Blocks of rows: the same samples at every pass, or a sentence that says which block differs."""

import re
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import consilience as cs
from consilience import RowBlocks, Views
from consilience.views.row_blocks import RowSample, random_keys, sample_rows, sample_size

rng = np.random.default_rng(0)
A, B = rng.normal(size=(23, 3)), rng.normal(size=(23, 2))
LABELS = np.array(["p", "q"] * 11 + ["p"], dtype=object)


def refused(message, call, error=ValueError):
    with pytest.raises(error, match=re.escape(message)) as raised:
        call()
    assert str(raised.value).isprintable()


def joined(blocks):
    parts = list(blocks)
    return Views.concat([part.X for part in parts]), parts


# -- cutting what is in memory
@pytest.mark.parametrize("size", [1, 4, 23, 100, None])
def test_blocks_of_arrays_are_the_arrays(size):
    weights = np.arange(23.0)
    X, parts = joined(RowBlocks.of({"a": A, "b": B}, LABELS, weights, size=size))
    assert Views(a=A, b=B) == X
    assert np.concatenate([part.y for part in parts]).tolist() == LABELS.tolist()
    assert np.array_equal(np.concatenate([part.sample_weight for part in parts]), weights)
    assert len(parts) == -(-23 // min(size or 23, 23))


def test_names_masks_and_columns_travel():
    frame = pd.DataFrame(A.copy(), columns=["x", "y", "z"], index=[f"s{i}" for i in range(23)])
    frame.iloc[3] = np.nan
    whole = Views(a=frame, b=B)
    X, _ = joined(RowBlocks.of(whole, size=5))
    assert whole == X
    assert X.sample_names.tolist() == frame.index.tolist()
    assert X.feature_names == {"a": ("x", "y", "z")}
    assert not X.present("a")[3]


def test_a_target_with_names_follows_the_samples():
    frame = pd.DataFrame(A, index=[f"s{i}" for i in range(23)])
    y = pd.Series(np.arange(23), index=frame.index)
    _, parts = joined(RowBlocks.of(Views(a=frame), y[::-1], size=6))
    assert np.concatenate([part.y for part in parts]).tolist() == list(range(23))


def test_labels_in_a_list_keep_their_types():
    y = ["a", None] * 11 + ["b"]
    _, parts = joined(RowBlocks.of(A, y, size=6))
    assert [label for part in parts for label in part.y] == y
    _, parts = joined(RowBlocks.of(A, list(range(23)), size=6))
    assert parts[0].y.dtype == np.int64
    _, parts = joined(RowBlocks.of(A, [1, "1"] * 11 + [1], size=6))
    assert [type(label) for label in parts[0].y[:2]] == [int, str]


def test_sparse_rows_are_cut_without_a_copy_of_the_whole():
    S = sp.random(20_000, 400, density=0.05, format="csr", random_state=0)
    S.sum_duplicates()  # other matrices are copied once, in canonical form
    blocks = RowBlocks.of({"s": S}, size=1000)
    tracemalloc.start()
    total = sum(X["s"].sum() for X, _, _ in blocks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isclose(total, S.sum())
    assert peak < (S.data.nbytes + S.indices.nbytes) / 5
    assert Views(s=S) == joined(blocks)[0]


def test_sequences_of_strings():
    texts = [f"text {i}" for i in range(22)] + [None]
    X, _ = joined(RowBlocks.of({"t": texts, "a": A}, size=9))
    assert X["t"].tolist() == texts


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.float16])
def test_a_memory_map_is_not_copied(tmp_path, dtype):
    shape = (200_000, 20)
    mapped = np.memmap(tmp_path / "m", dtype=dtype, mode="w+", shape=shape)
    mapped[:, 0] = np.arange(shape[0]) % 200
    blocks = RowBlocks.of(mapped, np.zeros(shape[0]), size=1000)
    tracemalloc.start()
    total = sum(float(X["view0"][:, 0].sum(dtype=np.float64)) for X, _, _ in blocks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == float((np.arange(shape[0]) % 200).sum())
    assert peak < 4 * 1000 * 20 * 8  # the whole takes 32 MB in double precision
    first = next(iter(blocks)).X["view0"]
    assert first.dtype == (np.float32 if dtype in (np.float32, np.float16) else np.float64)
    if dtype in (np.float32, np.float64):
        assert np.shares_memory(first, mapped)


def test_sizes_and_lengths_are_checked():
    for size in (0, -3, 2.5, True):
        refused(f"an integer of at least 1; got {size!r}", lambda size=size: RowBlocks.of(A, size=size))
    refused("`y` has 30 values for 23 samples", lambda: RowBlocks.of(A, np.zeros(30)))
    refused("`sample_weight` has 20 values for 23 samples", lambda: RowBlocks.of(A, sample_weight=np.zeros(20)))
    refused("View 'b' has 3 rows", lambda: RowBlocks.of({"a": A.astype(int), "b": B[:3].astype(int)}))


def test_gram_matrices_are_refused():
    X = Views({"k": A @ A.T}, precomputed=True)
    message = "View 'k' of the samples is a Gram matrix over all samples, which cannot be read by blocks."
    refused(message, lambda: RowBlocks.of(X))
    refused("View 'k' of block 0 of the blocks is a Gram", lambda: list(RowBlocks(lambda: iter([X]))))


# -- sources
def source_of(*blocks):
    return RowBlocks(lambda: iter(blocks))


def test_every_form_of_a_block():
    for block in (A, (A,), (A, LABELS), (A, LABELS, None), (Views(view0=A), None, np.ones(23)), ({"view0": A}, None)):
        (X, y, weights), *rest = source_of(block)
        assert not rest
        assert Views(view0=A) == X
        assert y is None or y is LABELS
        assert weights is None or len(weights) == 23


def test_a_source_is_a_function():
    refused("RowBlocks takes a function that returns a new iterator", lambda: RowBlocks(iter([A])), TypeError)


def test_blocks_must_be_alike():
    cases = {
        "view 'a' is dense, with 2 columns; in blocks before it is dense, with 3 columns": [{"a": A}, {"a": B}],
        "view 'a' is sparse, with 3 columns; in blocks before it is dense": [{"a": A}, {"a": sp.csr_array(A)}],
        "has no y and no sample_weight; blocks before have y and no sample_weight": [(A, LABELS), A],
        "has y of 2 columns and no sample_weight; blocks before have y and": [(A, A[:, 0]), (A, B)],
    }  # fmt: skip
    for message, blocks in cases.items():
        refused(message, lambda blocks=blocks: list(source_of(*blocks)))
        refused("Block 1 of the blocks", lambda blocks=blocks: list(source_of(*blocks)))


def test_a_view_may_be_missing_in_a_block():
    X, _ = joined(source_of({"b": B}, {"b": B[::-1], "a": A}))
    assert X.present("a").tolist() == [False] * 23 + [True] * 23
    X, _ = joined(source_of({"a": None, "b": B}, {"a": A, "b": B}, {"a": np.full_like(A, np.nan), "b": B}))
    assert X.present("a").tolist() == [False] * 23 + [True] * 23 + [False] * 23
    refused(
        "is dense, with 2 columns", lambda: list(source_of({"a": A, "b": B}, {"a": None, "b": B}, {"a": B, "b": B}))
    )


def test_bad_blocks_are_named():
    refused("Block 1 of the blocks has 4 parts", lambda: list(source_of(A, (A, 1, 2, 3))))
    refused("Block 0 of the blocks has 23 samples and 22 values of `y`", lambda: list(source_of((A, LABELS[1:]))))
    refused("values of `sample_weight`", lambda: list(source_of((A, LABELS, np.ones(3)))))
    refused("Block 0 of the blocks is a list with an array of one dimension", lambda: list(source_of([A, A[:, 0]])))
    empty = A.copy()
    empty[2] = np.nan
    message = "Block 1 of the blocks, whose first sample is number 23: Sample 2 has no view at all"
    refused(message, lambda: list(source_of(A, empty)))


def test_sources_that_end_early_or_change_are_refused():
    refused("The blocks had 23 samples at this pass, not 46", lambda: list(RowBlocks(lambda: iter([A]), n_samples=46)))
    left = [[A, A], [A]]
    blocks = RowBlocks(lambda: iter(left.pop(0)))
    assert len(list(blocks)) == 2
    refused("The blocks had 23 samples at this pass, not 46", lambda: list(blocks))
    used_up = iter([A])
    blocks = RowBlocks(lambda: used_up)
    list(blocks)
    refused("A generator is used up after one pass", lambda: list(blocks))
    refused("The blocks gave no samples", lambda: list(RowBlocks(lambda: iter([]))))
    assert len(list(source_of(A[:0], A))) == 1  # an empty block is not a sample


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda a: [f"{row[0]:.3f}" for row in a]])
def test_other_samples_at_a_later_pass_are_refused(kind):
    draw = np.random.default_rng(0)
    blocks = RowBlocks(lambda: iter([{"a": kind(A)}, {"a": kind(draw.normal(size=(23, 3)))}]), name="the sensor")
    list(blocks)
    refused("Sample 23 of the sensor is not the one that it was at an earlier pass", lambda: list(blocks))


def test_other_cuts_and_rounding_are_the_same_samples():
    cuts = iter([5, 7, 23])
    noise = iter([0, 1e-9, -1e-9])

    def source():
        size, shift = next(cuts), next(noise)
        return ({"a": A[start : start + size] * (1 + shift)} for start in range(0, 23, size))

    blocks = RowBlocks(source)
    assert [len(list(blocks)) for _ in range(3)] == [5, 4, 1]


def test_a_pass_may_stop_early():
    blocks = RowBlocks.of(A, size=5)
    assert len(next(iter(blocks)).X) == 5
    assert len(list(blocks)) == 5


def test_samples_of_wide_views_have_fewer_rows():
    for columns, n_components, expected in (
        (3, 0, 20_000), (3356, 0, 2**26 // 3356), (5000, 0, 2**26 // 5000), (70_000, 0, 1000), (70_000, 999, 1000),
        (70_000, 1001, 1001), (3, 30_000, 30_000),
    ):  # fmt: skip
        X = Views(a=np.zeros((2, columns)), b=np.zeros((2, 1)), t=["x", "y"])
        assert sample_size(X, n_components) == expected
    assert sample_size(Views(t=["x", "y"])) == 20_000


def test_random_keys_are_a_bijection_and_their_smallest_are_a_sample():
    keys = random_keys(np.arange(5000), 3)
    assert len(set(keys.tolist())) == 5000
    assert keys.dtype == np.uint64
    assert random_keys(np.arange(2), 0).tolist() == [16294208416658607535, 7960286522194355700]  # of SplitMix64
    assert random_keys([0], 1).tolist() != random_keys([0], 0).tolist()
    for size in (1, 10, 4999):
        assert sample_rows(np.arange(5000), size, 3).tolist() == np.sort(np.argsort(keys)[:size]).tolist()
    for size in (5000, 5001):
        assert sample_rows(np.arange(5000), size, 3).tolist() == list(range(5000))


@pytest.mark.parametrize("size", [1, 5, 30])
def test_samples_of_rows_are_those_with_the_smallest_keys_by_any_blocks(size):
    rows = np.arange(40.0)[:, None]
    best = sample_rows(np.arange(40), size, 7)
    near = np.flatnonzero(random_keys(np.arange(40), 7) < np.uint64(2**62))  # a quarter of all keys
    for cuts in ([0, 40], [0, 3, 40], [0, 1, 2, 20, 21, 40]):
        whole, parts, few = RowSample(size, 7), [RowSample(size, 7), RowSample(size, 7)], RowSample(size, 7, share=0.25)
        for k, (first, last) in enumerate(pairwise(cuts)):
            block = Views(a=rows[first:last]), np.arange(first, last)
            for sample in (whole, parts[2 * k >= len(cuts) - 1], few):
                sample.add(*block)
        assert whole.complete
        for sample in (whole, parts[0] + parts[1]):
            assert len(sample.positions) <= 2 * size
            assert sample.offered == 40
            X, positions = sample.rows()
            assert positions.tolist() == best.tolist()
            assert X["a"][:, 0].tolist() == best.tolist()
        assert few.complete == (len(near) >= size)
        if len(near):
            assert few.rows()[1].tolist() == near[sample_rows(near, size, 7)].tolist()
    both = RowSample(3, 7, share=0.5) + RowSample(4, 7)
    assert (both.size, both.seed, both.share) == (4, 7, 0.5)


def test_other_samples_at_a_later_pass_are_noticed_also_where_numbers_are_small():
    passes = iter([1.0, 1.0, 1.01])
    blocks = RowBlocks(lambda: iter([{"a": A * 1e-9 * next(passes)}]))
    list(iter(blocks))
    list(iter(blocks))
    refused("Sample 0 of the blocks is not the one that it was at an earlier pass", lambda: list(iter(blocks)))


def test_targets_and_weights_of_a_block_are_matched_by_name():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), index=[f"s{k}" for k in range(40)], columns=list("pqr"))
    y, w = X["p"] - X["q"], pd.Series(rng.uniform(0.1, 1, 40), index=X.index)
    cuts = [slice(0, 15), slice(15, 40)]
    mixed = cs.RowBlocks(lambda: [(X[c], y[c].sort_values(), w[c].sort_values()) for c in cuts])
    straight = cs.RowBlocks(lambda: [(X[c], y[c].to_numpy(), w[c].to_numpy()) for c in cuts])
    for model in (cs.CoRegularizedRidge("linear", n_components=3, random_state=0), cs.PassiveAggressiveRegressor()):
        learn = "fit" if hasattr(model, "n_components") else "partial_fit"
        found, expected = (getattr(clone(model), learn)(blocks) for blocks in (mixed, straight))
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    assert found.score(mixed) == expected.score(straight)
    with pytest.raises(ValueError, match=r"Block 1 of the blocks: The index of y \('s0'"):
        list(cs.RowBlocks(lambda: [(X[c], y[cuts[0]].to_numpy() if c == cuts[0] else y[:25]) for c in cuts]))
