"""Reports: the numbers are right, the page needs no other file, and a browser shows it as intended."""

import re
import shutil
from html import escape, unescape

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience as cs
from consilience.evaluation._wrappers import final_estimator
from consilience.evaluation.candidates import candidates
from consilience.evaluation.comparison import compare
from consilience.kernels import RBF
from consilience.kernels.gram import alignment
from consilience.report import Provenance, StreamFindings, examine, examine_external, write_report
from consilience.report._answers import answers_of
from consilience.report._charts import _Axis
from consilience.report._examine_views import ALIGNED_SAMPLES
from consilience.report._scores import interval_text
from consilience.report._sections import certificate_text
from consilience.solvers.certificates import Certificate

HOSTILE = "<img src=x onerror=\"console.error('ran')\">"
TITLE = "</script><script>console.error('ran')</script>"
rng = np.random.default_rng(0)
A, B = rng.normal(size=(80, 3)), rng.normal(size=(80, 2))
F = A[:, 0] + np.sin(2 * B[:, 0]) + 0.3 * rng.normal(size=80)
X80, SIGN = cs.Views({"a": A, "b": B}), (F > 0).astype(int)
FAILS = {"fails": cs.LateFusion(LogisticRegression(C=-1.0)), "a alone": cs.LateFusion(GaussianNB())}


@pytest.fixture(scope="module")
def classes():
    """Breast cancer with a third of the rows without one view, hostile names."""
    X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    X, y = X[:150], np.array([HOSTILE, "benign & 'fine'"])[y[:150]]
    mask = np.ones((150, 3), dtype=bool)
    mask[::3, 1] = False
    X = cs.Views({"mean": X["mean"], HOSTILE: X["error"], "worst": X["worst"]}, mask=mask)
    names = ["ViewMetricRidgeClassifierCV", "CoRegularizedSVC", "LateFusion", "worst alone", "mean alone"]
    board = compare(X, y, estimators=names, cv=3, inner_cv=2, baselines=False)
    X = cs.Views(X, sample_names=[f"<b>{i}</b>" for i in range(150)])
    return X, y, board, examine(X, y, board, title=TITLE)


@pytest.fixture(scope="module")
def regression():
    names = ["CoRegularizedRidgeCV", "ViewMetricRidgeCV", "EarlyFusion", "a alone"]
    return examine(X80, F, compare(X80, F, estimators=names, cv=3, inner_cv=2, baselines=False), title="Regression")


@pytest.fixture(scope="module")
def stream():
    X, y = cs.datasets.make_views(n_samples=400, n_classes=2, random_state=0, return_X_y=True)
    model, other = cs.KernelPerceptron("rbf"), cs.OnlinePerceptron()
    result = cs.progressive_validation(model, X, y)
    others = {"OnlinePerceptron": cs.progressive_validation(other, X, y)}
    return StreamFindings("A stream", "KernelPerceptron", result, model.certificate(X, y), others)


@pytest.fixture(scope="module")
def page(classes, regression, stream, tmp_path_factory):
    return write_report(tmp_path_factory.mktemp("report") / "r.html", [classes[3], regression, stream], title=TITLE)


@pytest.fixture
def text_of(tmp_path):
    return lambda found: write_report(tmp_path / "r.html", found).read_text()


def examined(X, y, *estimators, **options):
    """Compare estimators in two folds and examine the best one."""
    given = {"estimators": list(estimators), "cv": 2, "inner_cv": 2, "baselines": False, **options}
    return examine(X, y, compare(X, y, **given))


# -- the numbers
def test_losses_are_those_of_fitting_without_the_view(classes):
    X, y, board, found = classes
    row = next(row for row in board if row.title == found.loss_estimator)
    for name in X.names:
        less = X[[other for other in X.names if other != name]]
        lost, n_different = [], 0
        for (train, test), chosen in zip(board.splits, row.best_params, strict=True):
            model = candidates(less, y)[row.name][0].set_params(**chosen).fit(less[train], y[train])
            lost.append(accuracy_score(y[test], row.predictions[test]) - model.score(less[test], y[test]))
            n_different += np.sum((row.predictions[test] == y[test]) != (model.predict(less[test]) == y[test]))
        by_folds = 4.302652729911275 * np.sqrt((1 / 3 + 1 / 2) * np.var(lost, ddof=1))  # Student's t, 2 degrees, 97.5%
        by_samples = 1.959963984540054 * np.sqrt(n_different + 1) / 150
        half = max(by_folds, by_samples)
        assert found.losses[name] == pytest.approx((np.mean(lost), np.mean(lost) - half, np.mean(lost) + half))


def test_losses_have_the_score_of_the_comparison():
    mask = np.ones((80, 2), dtype=bool)
    mask[::4, 0] = False  # without "b", these samples have no view left
    X = cs.Views(X80, mask=mask)
    own = {"mine": cs.LateFusion(LogisticRegression())}
    board = compare(X, SIGN, estimators=own, scoring="roc_auc", cv=2, baselines=False)
    found = examine(X, SIGN, board)
    lost = []
    for train, test in board.splits:
        model = cs.LateFusion(LogisticRegression()).fit(X[train], SIGN[train])
        kept_train, kept = train[mask[train, 0]], test[mask[test, 0]]
        less = cs.LateFusion(LogisticRegression()).fit(X[kept_train][["a"]], SIGN[kept_train])
        with_b = roc_auc_score(SIGN[kept], model.decision_function(X[kept]))
        lost.append(with_b - roc_auc_score(SIGN[kept], less.decision_function(X[kept][["a"]])))
    assert found.losses["b"][0] == pytest.approx(np.mean(lost))
    assert found.learning_curve[-1, 1] == board[0].score


def test_held_out_predictions_make_the_scores(classes):
    _, y, board, found = classes
    for row in board:
        for score, (_, test) in zip(row.scores, board.splits, strict=True):
            assert score == pytest.approx(np.mean(row.predictions[test] == y[test]))
    agreed, disputed = found.agreed, found.disputed
    assert agreed[0] + disputed[0] == 150
    voter = next(row for row in board if row.title == found.vote_estimator)
    correct = agreed[0] * agreed[1] + disputed[0] * disputed[1]
    assert correct == pytest.approx(np.sum(voter.predictions == y))
    assert found.disagreements
    for row in found.disagreements:
        i = int(re.sub(r"\D", "", row.sample))
        assert (row.prediction, row.truth) == (voter.predictions[i], y[i])
        assert len({vote for vote in row.votes if vote}) > 1
        assert (row.votes[1] == "") == (i % 3 == 0)
    spreads = [row.spread for row in found.disagreements]
    assert spreads == sorted(spreads, reverse=True)


def test_patterns_alignments_calibration_curve(classes):
    _, _, board, found = classes
    assert found.patterns == [((True, True, True), 100), ((True, False, True), 50)]
    np.testing.assert_allclose(found.alignments, found.alignments.T)
    np.testing.assert_allclose(np.diag(found.alignments), 1)
    assert found.alignments[0, 2] > found.alignments[0, 1]  # means and worst values are alike
    assert found.learning_curve[-1].tolist() == [100, board[0].score, board[0].low, board[0].high]
    assert (np.diff(found.learning_curve[:, 0]) > 0).all()


def test_votes_and_alignments_do_not_depend_on_the_units_of_the_target():
    scaled = TransformedTargetRegressor(
        make_pipeline(cs.PerView(StandardScaler()), cs.CoRegularizedRidge(agreement_penalty=1e-3)),
        transformer=StandardScaler(),
    )
    plain = examined(X80, F, estimators={"scaled": scaled})
    for shift, scale in [(0, 1), (1e7, 1e3), (0, 1e-9)]:
        found = examined(X80, shift + scale * F, estimators={"scaled": scaled})
        assert found.disagreements
        for row in found.disagreements:
            assert all(abs(float(vote) - shift) < 100 * scale for vote in row.votes)
        np.testing.assert_allclose(found.alignments, plain.alignments, atol=1e-6)


def test_alignment_is_of_samples_that_have_both():
    mask = {"b": np.arange(80) < 40}
    b = np.vstack([A[:40], rng.normal(size=(40, 3))])
    found = examined(cs.Views({"a": A, "b": b}, mask=mask), np.arange(80) % 2, "LateFusion")
    assert found.alignments[0, 1] == pytest.approx(1.0)


def test_alignments_of_precomputed_views_are_of_the_samples_used():
    n = ALIGNED_SAMPLES + 60
    Z = np.random.default_rng(1).normal(size=(2 * n, 2))
    K, y = RBF(0.3)(Z), np.arange(n) % 2
    rows = np.arange(n) * 2  # every other sample of the shared matrix
    X = cs.Views({"k": K, "again": K, "d": Z}, precomputed=["k", "again"])[rows]
    own = {"ridge": cs.CoRegularizedRidgeClassifier({"k": "precomputed", "again": "precomputed"})}
    assert examined(X, y, estimators=own).alignments[0, 1] == pytest.approx(1.0)  # the same matrix twice
    less, target = examined(X[:100], y[:100], estimators=own), (y[:100, None] == y[:100]).astype(float)
    kept = K[np.ix_(rows[:100], rows[:100])]
    assert less.alignments[0, 3] == pytest.approx(alignment(kept, target, unbiased=True))


def test_alignments_of_independent_noise_are_about_0():
    noise = np.random.default_rng(0).normal(size=(2, 80, 1000))
    found = examined(cs.Views({"a": noise[0], "b": noise[1], "again": noise[0]}), SIGN, "LateFusion")
    assert np.abs(found.alignments[[0, 0, 1], [1, 3, 3]]).max() < 0.15
    assert found.alignments[0, 2] == pytest.approx(1)
    assert "Views 'a' and 'again' have the same columns" in found.problems[0]


def test_calibration_is_of_held_out_probabilities(text_of):
    found = examined(X80, SIGN, "LateFusion")
    given, observed, counts = found.calibration.T
    assert counts.sum() == 80
    p = found.best.probabilities[:, 1]
    first = p < np.floor(10 * p.min() + 1) / 10  # the lowest bin that is not empty
    assert (given[0], observed[0], counts[0]) == pytest.approx((p[first].mean(), SIGN[first].mean(), first.sum()))
    assert np.average(observed, weights=counts) == pytest.approx(SIGN.mean())
    assert "Predicted probability of 1" in text_of(found)
    without = examined(X80, SIGN, "ViewMetricRidgeClassifierCV")
    assert len(without.calibration) == 0
    assert "The best estimator has no probabilities" in text_of(without)
    by_value = examined(X80, F, "EarlyFusion").calibration
    assert by_value[:, 2].sum() == 80
    assert np.average(by_value[:, 1], weights=by_value[:, 2]) == pytest.approx(F.mean())


def test_perfect_predictions_have_wide_intervals():
    y = np.array(["p", "q"] * 40)
    X = cs.Views({"a": 10.0 * (y == "p")[:, None] + A[:, :1], "w": np.where(y == "p", "pear", "quince").tolist()})
    found = examined(X, y, "CoRegularizedRidgeClassifierCV", "KernelPerceptron")
    assert found.best.score == 1.0
    assert 0.9 < found.best.low < 0.99  # 80 samples cannot show more
    assert (found.learning_curve[:, 3] <= 1).all()
    assert (found.learning_curve[:, 2] < found.learning_curve[:, 1]).all()
    assert found.losses
    assert all(low < high for _, low, high in found.losses.values())


def test_the_consensus_shows_its_weights_importances_and_sets(text_of):
    X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    board = compare(X[:150], y[:150], estimators=["ConsensusClassifier"], cv=3, baselines=False)
    found = examine(X[:150], y[:150], board)
    final = final_estimator(found.model)
    assert found.importances == final.view_importances_
    assert found.losses == {}
    frame = final.kernel_weights_
    assert sum(weight for _, _, weight in found.kernel_weights) == pytest.approx(frame["weight"].sum())
    assert sum(found.weights.values()) == pytest.approx(1)
    covered, n = 0, 0
    for train, test in board.splits:
        model = final_estimator(board.estimators["ConsensusClassifier"][0]).fit(X[train], y[train])
        sets = model.predict_set(X[test], coverage=0.9)
        covered, n = covered + sets[np.arange(len(test)), y[test]].sum(), n + len(test)
    assert found.sets.covered.value == pytest.approx(covered / n)
    assert len(found.sets.sizes) == 150
    text = text_of(found)
    for words in ("Weights by view and kernel", "Importance of the views", "Prediction sets", "Columns of worst"):
        assert words in text
    assert found.vote_estimator == found.best.title  # its views have predictions of their own


def test_prediction_intervals(text_of):
    found = examined(X80, F, "ConsensusRegressor")
    assert 0.7 < found.sets.covered.value <= 1
    assert (found.sets.sizes > 0).all()
    assert "Prediction intervals</strong> that should contain 90% of the values" in text_of(found)


def test_columns_that_matter():
    found = examined(X80, SIGN, "EarlyFusion")
    assert found.feature_importances["a"][0][0] == "0"  # the target depends on the first column of each view
    assert found.feature_meaning


# -- the answers
def test_the_task_is_said(regression, text_of):
    assert f"Task: regression, 80 values from {F.min():.4g} to {F.max():.4g}." in text_of(regression)
    assert "Task: classification, 2 classes: 0, 1." in text_of(examined(X80, SIGN, "EarlyFusion"))


def test_answers_are_differences_of_held_out_scores():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = cs.Views({name: y[:, None] + rng.normal(size=(400, 1)) for name in ("a", "b", "c")})
    names = ["EarlyFusion", "LateFusion", "a alone", "b alone", "c alone"]
    board = compare(X, y, estimators=names, cv=3, inner_cv=2)
    found = examine(X, y, board)
    answers = {answer.question: answer for answer in answers_of(found)}
    several = next(row for row in board if row.kind == "estimator")
    single = max((row for row in board if row.kind == "single view"), key=lambda row: row.score)
    assert several.score > single.score + 0.05
    views, gain = answers["Do several views help?"], board.gain_of_views()
    chosen = []  # the rows that are best in the other folds
    for kind in ("estimator", "single view"):
        rows = [row for row in board if row.kind == kind]
        best = [max(rows, key=lambda row, k=k: sum(row.scores) - row.scores[k]) for k in range(3)]
        chosen.append(np.mean([row.scores[k] for k, row in enumerate(best)]))
    assert gain.value == pytest.approx(chosen[0] - chosen[1])
    assert (views.short, gain.verdict, gain.n_comparisons) == ("Yes", "different", 1)
    assert f"<p>+{100 * gain.value:.1f} points of accuracy" in views.text
    assert "corrected" not in views.text
    n_pairs = len(board) * (len(board) - 1) // 2
    assert f", corrected for {n_pairs} comparisons)" in answers["Gap to the baseline"].text
    assert answers["Simplest within noise"].short == board.simplest().title
    assert answers["Gap to the baseline"].text.count("points of accuracy") == 1
    assert answers["Problems in the data"].short == "None found"
    noise = cs.Views({"a": X["a"], "b": rng.normal(size=(400, 2))})
    found = examined(noise, y, *names[:-1])
    answers = {answer.question: answer for answer in answers_of(found)}
    assert answers["Do several views help?"].short == "Not shown"
    assert "Gap to the baseline" not in answers


def test_few_samples_cannot_tell():
    found = examined(X80[:16], SIGN[:16], "EarlyFusion", "a alone")
    answers = {answer.question: answer for answer in answers_of(found)}
    assert answers["Do several views help?"].short == "Too few samples to tell"
    assert answers["Problems in the data"].short != "None found"


def test_scores_as_text():
    assert interval_text(0.981, 0.955, 1.0, "accuracy") == "98.1 (95.5-100)"
    assert interval_text(0.5, -0.1, 0.7, "r2") == "0.500 (-0.100 to 0.700)"
    assert interval_text(float("nan"), 0.0, 1.0, "accuracy") == "- (0-100)"


def test_a_long_leaderboard_is_folded(text_of):
    own = {f"model {k}": cs.LateFusion(GaussianNB(var_smoothing=10.0**-k)) for k in range(12)}
    text = text_of(examined(X80, SIGN, estimators=own))
    assert "<summary>4 more rows</summary>" in text
    head, _, rest = text.partition("<summary>4 more rows</summary>")
    board = head[head.index(">Leaderboard</h3>") :]
    assert board.count("<tr") == 1 + 8 + 1  # head, rows, axis
    assert rest[: rest.index("</details>")].count("<tr") == 1 + 4 + 1
    assert board.count('class="best"') == 8  # the line at the best score


def test_views_that_a_metric_combines_do_not_vote():
    names = ["ViewMetricRidgeClassifierCV", "LateFusion"]
    found = examined(X80, SIGN, *names)
    assert found.vote_estimator == next(row.title for row in found.board if row.name == names[1])
    # a sum of views, without a penalty on their disagreement, does not say what each view predicts
    for penalty in (0.0, 1e-3):
        own = {
            "ridge": cs.CoRegularizedRidgeClassifier(agreement_penalty=penalty),
            "early": cs.EarlyFusion(GaussianNB()),
        }
        assert examined(X80, SIGN, estimators=own).vote_estimator == ("ridge" if penalty else "")
    board = compare(X80, SIGN, estimators=names[:1], cv=2, baselines=False)
    found = examine(X80, SIGN, board)
    assert found.vote_estimator == ""
    assert [sorted(each) for each in found.chosen_params] == [["alpha", "metric_penalty"]] * 3
    train, _ = board.splits[0]
    model = candidates(X80, SIGN)[names[0]][0].fit(X80[train], SIGN[train])
    assert found.chosen_params[1]["alpha"] == final_estimator(model).alpha_
    assert examined(X80, SIGN, "a alone").losses == {}  # a single view cannot be left out


def test_chosen_parameters_of_the_search():
    found = examined(X80, F, "MultipleKernelRidge")
    assert [list(each) for each in found.chosen_params] == [["alpha"]] * 3
    assert found.chosen_params[1:] == [{"alpha": next(iter(chosen.values()))} for chosen in found.best.best_params]


@pytest.mark.parametrize(
    ("certificate", "text"),
    [
        (Certificate(status="converged", objective=1.0, gap=3e-7), "Gap 3e-07: within 0.00003% of the optimum."),
        (Certificate(status="exact", objective=1.0, gap=1e-15), "Optimal up to rounding."),
        (Certificate(status="exact"), "Solved directly, without iterations."),
    ],
)
def test_certificates_in_words(certificate, text):
    assert certificate_text(certificate) == text
    assert "hold to 2e-05" in certificate_text(Certificate(status="settled", residual=2e-5))


def test_ticks_are_few_and_inside():
    for low, high in [(0, 1), (-0.03, 0.11), (1e-7, 3e-7), (900, 1203), (0, 0), (-5, 1e6)]:
        axis = _Axis(low, high, 0, 100)
        ticks = axis.ticks()
        assert 1 <= len(ticks) <= 8
        assert all(-1e-6 <= axis(value) <= 100 + 1e-6 for value in ticks)
        assert len({axis.text(value) for value in ticks}) == len(ticks)
    assert _Axis(1, 1797, 0, 100, log=True).ticks() == [1, 10, 100, 1000]


# -- odd data
ODD = {
    "one view": (X80[["a"]], SIGN, {"estimators": ["MaxMarginClassifier"]}, "Columns of a"),
    "a single view is the best": (X80, SIGN, {"estimators": ["a alone"]}, "has no estimator of all views"),
    "a rare class": (
        X80, np.r_[np.zeros(78, dtype=int), 1, 1], {"estimators": ["ViewMetricRidgeClassifierCV"]}, "Confusion matrix",
    ),
    "few samples": (X80[:8], F[:8], {"estimators": ["EarlyFusion"], "cv": 4}, "Predicted and true"),
    "integers as targets": (
        X80, np.round(20 * F).astype(int), {"estimators": ["EarlyFusion"], "task": "regression"}, "Predicted and true",
    ),
    "many classes": (
        X80, np.array([f"class {i % 25}" for i in range(80)]), {"estimators": ["LateFusion"]},
        "The most frequent confusions of 25 classes",
    ),
    "a score below zero": (
        X80, F, {"estimators": ["EarlyFusion", "b alone"], "scoring": "neg_mean_squared_error"},
        "neg mean squared error of .*-[0-9.]+ ",
    ),
    "groups": (X80, SIGN, {"estimators": ["LateFusion"], "groups": np.arange(80) // 4}, "All samples of a group are"),
    "a fixed metric": (
        X80, SIGN, {"estimators": {"fixed": cs.ViewMetricRidgeClassifier(metric="covariance")}}, "weights all views",
    ),
    "an estimator that fails": (
        X80, SIGN, {"estimators": FAILS},
        "Could not be fitted: fails: .*C.*",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_odd_data_get_a_report(case, text_of):
    X, y, options, words = ODD[case]
    text = text_of(examined(X, y, **options))
    assert ">Leaderboard</h3>" in text
    assert re.search(words, text)


def test_classes_are_in_order_and_long_names_are_shortened(text_of):
    text = text_of(examined(cs.Views({"a" * 40: A, "b": B}), np.arange(80) % 12, "LateFusion"))
    chart = text[text.index('aria-label="Confusion matrix') :]
    assert re.findall(r'text-anchor="end"[^>]*>(\d+)<', chart)[:12] == [str(k) for k in range(12)]
    assert f">{'a' * 13}…<" in text.replace(f"<title>{'a' * 40}</title>", "")


# -- the page
def test_the_page_needs_no_other_file(page, classes):
    text = page.read_text()
    assert not re.findall(r"https?:|@import|url\(|<link|<iframe|<img|srcset", text)
    links = re.findall(r"href=\"([^\"]*)\"", text)
    assert {"#part0", "#part1", "#part2", "#part3", "#part0-0"} <= set(links)
    assert all(f'id="{link[1:]}"' in text for link in links)
    assert text.count("<script") == text.count("</script>") == 1
    assert " style=" not in text  # the page's own policy forbids it
    for heading in (
        "Leaderboard",
        "Predictions",
        "Importance of views",
        "Disagreement of views",
        "Data",
        "Chosen model",
    ):
        # the regression has no estimator whose views predict by themselves
        assert text.count(f">{heading}</h3>") == (1 if heading.startswith("Disagreement") else 2)
    order = [text.index(words) for words in ("Do several views help?", ">Leaderboard</h3>", "Recall by class")]
    assert order == sorted(order)
    headings = (
        "&lt;img src=x",
        "Confusion",
        "Calibration",
        "Learning curve",
        "Predicted and true",
        "bound of KernelPerceptron: ",
    )
    for words in (escape(certificate_text(classes[3].certificate)), *headings):
        assert words in text
    assert "nan" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.S).lower().split()


def test_a_report_is_written_completely_or_not_at_all(stream, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_report(tmp_path / "no" / "r.html", stream)
    file = tmp_path / "r.html"
    file.write_text("old")
    with pytest.raises(AttributeError):
        write_report(file, [stream, object()])
    assert file.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_the_headline_of_a_stream_is_its_best_estimator(stream, text_of):
    assert stream.result.error != stream.others["OnlinePerceptron"].error
    best = min(stream.results, key=lambda name: stream.results[name].error)
    swapped = StreamFindings(
        "s", "OnlinePerceptron", stream.others["OnlinePerceptron"], None, {"KernelPerceptron": stream.result}
    )
    for found in (stream, swapped):
        text = text_of(found)
        assert f'<p class="lead"><strong>{best}</strong> made {stream.results[best].n_mistakes:,} mistakes' in text
    assert "<summary>Mistake bound of KernelPerceptron</summary>" in text_of(stream)


def test_provenance_and_code(regression, stream, tmp_path):
    data = tmp_path / "a&b.csv"
    data.write_text("x,y\n1,2\n")
    origin = Provenance((data,), "consilience compare 'a&b.csv'", tmp_path / "best.cons")
    text = write_report(tmp_path / "r.html", regression, provenance=origin).read_text()
    for words in (
        "a&amp;b.csv (8 bytes, SHA-256 ",
        "<dt>random state</dt><dd>0",
        "numpy ",
        "scikit-learn ",
        "best.cons",
    ):
        assert words in text
    code = re.search(r"<pre><code>(import consilience.*?)</code></pre>", text, flags=re.S).group(1)
    cs.save(regression.model, tmp_path / "best.cons")
    named = {"cs": cs}
    exec(unescape(code).split("X = ")[0], named)
    np.testing.assert_allclose(named["model"].predict(X80), regression.model.predict(X80))
    assert "Load the model" not in write_report(tmp_path / "s.html", stream).read_text()


# -- an external cohort
def test_a_page_on_an_external_cohort(text_of, tmp_path):
    X, y = cs.datasets.make_views(n_samples=300, n_classes=3, random_state=0, return_X_y=True)
    y = np.array([HOSTILE, "b", "c"])[y].astype(object)
    model = cs.LateFusion(LogisticRegression()).fit(X[:150], y[:150].astype(str))
    y[150], y[151] = None, "new"
    mask = np.ones((150, len(X.names)), dtype=bool)
    mask[:30, 0] = False
    found = examine_external(model, cs.Views(X[150:], mask=mask), y[150:], title=TITLE, n_resamples=100)
    text = text_of(found)
    accuracy = found.evaluation.measures["accuracy"]
    assert interval_text(*accuracy, "accuracy", "%") in text
    for words in ("1 sample without a target", "does not know new", f"30 of 150 samples lack the view '{X.names[0]}'"):
        assert escape(words) in text
    for words in ("Brier score", "log loss", "AUC (%)", "ROC.", "Calibration.", "Confusion matrix", "PPV (%)"):
        assert words in text
    assert "<img" not in text
    assert "nan" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.S).lower().split()
    ridge = cs.CoRegularizedRidge().fit(X80[:40], F[:40])
    text = text_of(examine_external(ridge, X80[40:], F[40:], n_resamples=100))
    assert "none of which is a training sample" in text
    for words in ("R²", "mean absolute error", "Predicted and true", "Calibration."):
        assert words in text
    text = text_of(examine_external(ridge, X80[20:], F[20:], n_resamples=100))
    assert "on 60 samples, 20 of which are training samples that the model stores." in text
    assert "20 of 60 samples are training samples of the model" in text
    assert "On the other 40 samples: R2" in text


# -- in a browser
@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture
def shown(browser, page):
    """Open the report in a window; check that it logs no error and loads nothing else."""
    heard, asked = [], []

    def show(**options):
        tab = browser.new_page(**options)
        tab.on("console", lambda message: heard.append(message.text))
        tab.on("pageerror", lambda error: heard.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(page.as_uri())
        return tab

    yield show
    assert heard == []
    assert set(asked) <= {page.as_uri()}


def column(tab, table, number):
    return tab.eval_on_selector_all(
        f"table.sortable >> nth={table} >> tbody tr td:nth-child({number})",
        "cells => cells.map(c => c.dataset.value ?? c.textContent)",
    )


def test_tables_sort(shown):
    tab = shown()
    tables = tab.locator("table.sortable")
    board = next(k for k in range(tables.count()) if "estimator" in tables.nth(k).inner_text().splitlines()[0])
    scores = [float(v) for v in column(tab, board, 3)]
    assert scores == sorted(scores, reverse=True)
    head = tables.nth(board).locator("th")
    head.nth(2).locator("button").click()
    assert head.nth(2).get_attribute("aria-sort") == "ascending"
    assert [float(v) for v in column(tab, board, 3)] == sorted(scores)
    head.nth(2).locator("button").click()
    assert [float(v) for v in column(tab, board, 3)] == sorted(scores, reverse=True)
    head.nth(0).locator("button").focus()
    tab.keyboard.press("Enter")
    names = column(tab, board, 1)
    assert names == sorted(names, key=str.lower)
    assert head.nth(2).get_attribute("aria-sort") is None


def test_light_dark_and_the_button(shown):
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    light, dark = (shown(color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.evaluate(paper) == "rgb(255, 255, 255)"
    assert dark.evaluate(paper) == "rgb(20, 24, 29)"
    assert dark.locator("#theme").inner_text() == "Light"
    dark.locator("#theme").click()
    assert dark.evaluate(paper) == "rgb(255, 255, 255)"
    light.locator("#theme").click()
    assert light.evaluate(paper) == "rgb(20, 24, 29)"
    light.emulate_media(media="print")
    assert light.evaluate(paper) == "rgb(255, 255, 255)"
    assert not light.locator("#theme").is_visible()


def test_a_phone_needs_no_sideways_scrolling(shown):
    tab = shown(viewport={"width": 360, "height": 740})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    widths = tab.eval_on_selector_all("svg.chart", "all => all.map(s => s.getBoundingClientRect().width)")
    assert min(widths) > 300
    sizes = tab.eval_on_selector_all("svg.chart text.label", "all => all.map(t => t.getBoundingClientRect().height)")
    assert min(sizes) > 6


def test_names_run_nothing(shown):
    tab = shown()
    assert tab.locator("h1").inner_text() == TITLE
    assert tab.locator("img").count() == 0
    assert tab.locator("script").count() == 1
