"""Problems in the data: each is found where it is planted, and none is found in data that are sound."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_iris, load_wine

import consilience as cs
from consilience.report._problems import find_problems

rng = np.random.default_rng(0)
A, B = rng.normal(size=(300, 20)), rng.normal(size=(300, 5))
Y = np.sort(np.arange(300) % 2)  # sorted by class, as files often are


def problems(X, y=Y, task="classification", n_folds=5):
    return find_problems(cs.Views(X), np.asarray(y), task, n_folds, 0)


def sound():
    yield "breast cancer", *cs.datasets.load_breast_cancer_views(return_X_y=True), "classification"
    for load in (load_iris, load_wine, load_diabetes):
        data = load()
        task = "regression" if load is load_diabetes else "classification"
        yield load.__name__, cs.Views(a=data.data[:, :2], b=data.data[:, 2:]), data.target, task
    binary = (A > 0).astype(float)
    yield "binary columns", cs.Views(a=binary[:, :10], b=binary[:, 10:]), Y, "classification"
    yield "many more columns than samples", cs.Views(a=rng.normal(size=(30, 5000))), np.arange(30) % 2, "classification"
    yield "strings", cs.Views(w=[f"word{i % 7}" for i in range(300)], a=A), Y, "classification"
    yield "Gram matrix", cs.Views({"k": A @ A.T, "b": B}, precomputed=["k"]), Y, "classification"
    numbers = np.tile(np.arange(15.0), 20)  # each number several times
    yield "ages", cs.Views(a=np.column_stack([numbers, A[:, 0]]), b=B), Y, "classification"


@pytest.mark.parametrize("case", list(sound()), ids=lambda case: case[0])
def test_sound_data_have_no_problem(case):
    _, X, y, task = case
    assert problems(X, y, task) == []


def test_noise_of_few_samples_is_not_a_leak():
    """Of many columns and few samples, some separate the classes by chance."""
    y = np.arange(12) % 2
    y = np.r_[y, y[:8]]
    draws = [np.random.default_rng(seed).normal(size=(20, 2000)) for seed in range(10)]
    assert [problems({"a": columns}, y) for columns in draws] == [[]] * 10
    leak = np.column_stack([draws[0][:, :20], y + 0.01 * draws[0][:, 0]])
    assert "Column 20 of view 'a' predicts the target by itself" in problems({"a": leak}, y)[0]
    separated = draws[0].copy()
    separated[:, 0] = np.where(y == 0, -1, 1) * np.abs(separated[:, 0])  # as good, but one of 20,000 columns
    assert problems({"a": np.hstack([separated, *draws[1:]])}, y) == []


PLANTED = {
    "leak": ({"a": A, "b": np.column_stack([B, 3 * Y + 0.01 * A[:, 0]])}, Y, "Column 5 of view 'b' predicts the"),
    "leak of a name": (
        {"a": pd.DataFrame(B, columns=list("pqrst")).assign(outcome=Y * 2.0), "b": A}, Y, "Column 'outcome' of view",
    ),
    "sparse leak": ({"a": sp.csr_array(np.column_stack([A, Y])), "b": B}, Y, "Column 20 of view 'a' predicts"),
    "missing cells": (
        {"a": np.column_stack([A, np.where(A[:, 0] > 2, np.nan, Y)]), "b": B}, Y, "Column 20 of view 'a' predicts",
    ),
    "several classes": (
        {"a": A, "b": np.column_stack([B, (3 * np.arange(300) % 7) % 7])}, np.arange(300) % 7, "Column 5 of view 'b'",
    ),
    "constant": ({"a": A, "b": np.full((300, 3), 2.5)}, Y, "View 'b' is constant"),
    "constant text": ({"a": A, "w": ["same"] * 300}, Y, "View 'w' is constant"),
    "same view": ({"a": A, "b": 100 - 0.0 + 3 * A[:, ::-1]}, Y, "Views 'a' and 'b' have the same columns"),
    "contained view": ({"a": A, "b": A[:, 4:9] * 2}, Y, "All columns of view 'b' are also in view 'a'"),
    "shared columns": (
        {"a": A, "b": np.column_stack([B, A[:, :2]])}, Y, "Views 'a' and 'b' share 2 columns, up to shift and scale",
    ),
    "row numbers": (
        {"a": np.column_stack([A, np.arange(300) * 3]), "b": B}, np.tile([0, 1], 150),
        "1 column of view 'a' looks like the number or name of a sample: 20",
    ),
    "shuffled ids": (
        {"a": pd.DataFrame(B).assign(patient_id=rng.permutation(5000)[:300]).rename(columns=str), "b": A}, Y,
        "looks like the number or name of a sample: 'patient_id'",
    ),
    "rare class": ({"a": A, "b": B}, np.r_[np.zeros(296), 1, 1, 1, 1].astype(int), "1 class has fewer than 10 samples"),
    "copies of one view": (
        {"a": np.repeat(A[:150], 2, axis=0), "b": B}, Y, "150 samples repeat another sample in view 'a'",
    ),
    "almost equal samples": (
        {"a": np.r_[A[:180], A[:120] + 0.05 * A[180:]], "b": np.r_[B[:180], B[:120] + 0.05 * B[180:]]}, Y,
        "240 samples are almost equal to another sample in every view",
    ),
    "a target with errors": (
        {"a": A, "b": np.column_stack([B, np.where(np.arange(300) % 33 == 5, 1 - Y, Y)])}, Y,
        "Column 5 of view 'b' predicts the target by itself (balanced accuracy 0.97",
    ),
    "a view that one class lacks": (
        {"a": A, "b": np.where(((Y == 1) | (np.arange(300) % 20 == 0))[:, None], np.nan, B)}, Y,
        "View 'b' is missing in 5% of 0, and in 100% of the others.",
    ),
    "a column that one class often lacks": (
        {"a": A, "b": np.column_stack([B, np.where((Y == 1) & (np.arange(300) % 4 == 0), np.nan, A[:, 1] + B[:, 1])])},
        Y,
        "Column 5 of view 'b' is missing in 0% of 0, and in 25% of the others.",
    ),
    "copies": ({"a": np.repeat(A[:150], 2, axis=0), "b": np.repeat(B[:150], 2, axis=0)}, Y, "150 samples repeat"),
}  # fmt: skip


@pytest.mark.parametrize("case", PLANTED)
def test_planted_problems_are_found(case):
    X, y, words = PLANTED[case]
    found = problems(X, y)
    assert any(words in sentence for sentence in found), found
    assert len(found) <= 2


def test_noise_has_no_problem():
    """Of 20 draws with 60 to 500 samples and up to 2,000 columns, with gaps, counts and skewed columns."""
    told = []
    for seed in range(20):
        draw = np.random.default_rng(seed)
        n, widths = int(draw.integers(60, 501)), draw.choice([3, 20, 300, 2000], size=2)
        first, second = draw.normal(size=(n, widths[0])), draw.lognormal(sigma=2.0, size=(n, widths[1]))
        if seed % 3 == 0:
            first[:, 1:][draw.random((n, widths[0] - 1)) < 0.1] = np.nan
            second[draw.random(n) < 0.2] = np.nan
        if seed % 3 == 1:
            second = np.floor(second)
        target = draw.normal(size=n) if seed % 4 == 0 else draw.integers(0, 1 + seed % 4, size=n)
        told += problems({"a": first, "b": second}, target, "regression" if seed % 4 == 0 else "classification")
    assert len(told) <= 1


def test_missing_values_that_depend_on_a_number():
    target = rng.normal(size=300)
    X = {"a": A, "b": np.where((target > 0.5)[:, None], np.nan, B)}
    (sentence,) = problems(X, target, "regression")
    assert sentence.startswith("View 'b' is missing in")
    assert "of the highest third, and in" in sentence


def test_a_leak_into_a_target_of_numbers():
    target = rng.normal(size=300)
    X = {"a": A, "b": np.column_stack([B, -2 * target])}
    assert problems({"a": A, "b": B}, target, "regression") == []
    assert "Column 5 of view 'b' predicts the target by itself (R² 1.00" in problems(X, target, "regression")[0]


def test_columns_that_are_all_good_are_no_leak():
    separated = Y[:, None] * 10 + A
    assert problems({"a": separated, "b": B + 10 * Y[:, None]}) == []


def test_views_are_compared_on_samples_that_have_both():
    mask = np.ones((300, 2), dtype=bool)
    mask[:100, 1] = False
    other = np.vstack([rng.normal(size=(100, 20)), A[100:]])
    X = cs.Views({"a": A, "b": other}, mask=mask)
    assert "have the same columns" in problems(X)[0]
