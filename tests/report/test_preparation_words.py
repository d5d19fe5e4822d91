"""The report names the preparation of each view, and leaves out views that models do not learn from."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import consilience as cs
from consilience.report import examine, write_report
from consilience.report._preparation import preparation_words

rng = np.random.default_rng(0)
A, B = rng.normal(size=(60, 5)), rng.normal(size=(60, 4))
PLATES = rng.permutation(["p", "q"] * 30).tolist()
Y = (A[:, 0] + B[:, 1] > 0).astype(int)
X = cs.Views(a=A, b=B, c=np.ones((60, 1)), plate=PLATES)
STEPS = [{"a": ["quantile", "variance:3"], "c": "drop"}, cs.RemoveBatch("plate")]


def test_words_of_every_step():
    words = {"a": [PCA(2), "standardize"], "b": ["impute", "top_k:2"], "c": "drop"}
    model = make_pipeline(cs.PerView(words), cs.RemoveBatch("plate"), cs.LateFusion(LogisticRegression())).fit(X, Y)
    assert preparation_words(model) == {
        "a": "PCA; standardized; effects of 2 batches (p, q) removed",
        "b": "single missing values filled with the mean; 2 of 4 columns kept, those with the strongest association "
        "with the target; effects of 2 batches (p, q) removed",
        "c": "not used",
    }
    assert preparation_words(cs.LateFusion(LogisticRegression()).fit(X[["a"]], Y)) == {}


@pytest.mark.parametrize("y", [Y, A[:, 0] + B[:, 1]], ids=["classification", "regression"])
def test_views_of_batches_and_dropped_views_are_not_shown_as_views(y, tmp_path):
    names = ["CoRegularizedRidgeClassifierCV" if y is Y else "CoRegularizedRidgeCV", "LateFusion", "b alone"]
    board = cs.compare(X, y, prepare=STEPS, estimators=names, cv=2, inner_cv=2)
    assert not board.failed
    findings = examine(X, y, board)
    assert findings.X.names == ("a", "b")
    assert list(findings.losses) == ["a", "b"]
    assert findings.alignments.shape == (3, 3)
    assert all(len(row.votes) == 2 for row in findings.disagreements)
    page = write_report(tmp_path / "report.html", findings).read_text()
    assert "<dt>preparation of b</dt><dd>effects of 2 batches (p, q) removed; " in page
    assert "plate</th>" not in page
