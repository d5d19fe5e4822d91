"""Reports: the numbers are right, the page needs no other file, and a browser shows it as intended."""

import re
import shutil
from html import escape

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB

import consilience as cs
from consilience.evaluation._wrappers import final_estimator
from consilience.evaluation.candidates import candidates
from consilience.evaluation.comparison import compare
from consilience.kernels import RBF
from consilience.kernels.gram import alignment
from consilience.report import StreamFindings, examine, write_report
from consilience.report._charts import _Axis
from consilience.report._examine import ALIGNED_SAMPLES
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
    board = compare(X, y, estimators=names, cv=3)
    X = cs.Views(X, sample_names=[f"<b>{i}</b>" for i in range(150)])
    return X, y, board, examine(X, y, board, title=TITLE)


@pytest.fixture(scope="module")
def regression():
    names = ["CoRegularizedRidgeCV", "ViewMetricRidgeCV", "EarlyFusion", "a alone"]
    return examine(X80, F, compare(X80, F, estimators=names, cv=3), title="Regression")


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
    return examine(X, y, compare(X, y, **{"estimators": list(estimators), "cv": 2, **options}))


# -- the numbers
def test_losses_are_those_of_fitting_without_the_view(classes):
    X, y, board, found = classes
    row = next(row for row in board if row.name == found.loss_estimator)
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
    board = compare(X, SIGN, estimators=own, scoring="roc_auc", cv=2)
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
    voter = next(row for row in board if row.name == found.vote_estimator)
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
    _, y, board, found = classes
    assert found.patterns == [((True, True, True), 100), ((True, False, True), 50)]
    np.testing.assert_allclose(found.alignments, found.alignments.T)
    np.testing.assert_allclose(np.diag(found.alignments), 1)
    assert found.alignments[0, 2] > found.alignments[0, 1]  # means and worst values are alike
    confidence, share, counts = found.calibration.T
    assert counts.sum() == 150
    assert (np.diff(confidence) >= 0).all()
    assert np.average(share, weights=counts) == pytest.approx(np.mean(board[0].predictions == y))
    assert found.learning_curve[-1].tolist() == [100, board[0].score, board[0].low, board[0].high]
    assert (np.diff(found.learning_curve[:, 0]) > 0).all()


def test_votes_and_alignments_do_not_depend_on_the_units_of_the_target():
    plain = examined(X80, F, "CoRegularizedRidgeCV")
    for shift, scale in [(0, 1), (1e7, 1e3), (0, 1e-9)]:
        found = examined(X80, shift + scale * F, "CoRegularizedRidgeCV")
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
    assert less.alignments[0, 3] == pytest.approx(alignment(K[np.ix_(rows[:100], rows[:100])], target))


def test_perfect_predictions_have_no_calibration_and_wide_intervals():
    y = np.array(["p", "q"] * 40)
    X = cs.Views({"a": 10.0 * (y == "p")[:, None] + A[:, :1], "w": np.where(y == "p", "pear", "quince").tolist()})
    board = compare(X, y, estimators=["CoRegularizedRidgeClassifierCV", "KernelPerceptron"], cv=2)
    assert board[0].score == 1.0
    assert 0.9 < board[0].low < 0.99  # 80 samples cannot show more
    found = examine(X, y, board)
    assert found.confidence == ""
    assert len(found.calibration) == 0
    assert (found.learning_curve[:, 3] <= 1).all()
    assert (found.learning_curve[:, 2] < found.learning_curve[:, 1]).all()
    assert found.losses
    assert all(low < high for _, low, high in found.losses.values())


def test_views_that_a_metric_combines_do_not_vote():
    names = ["ViewMetricRidgeClassifierCV", "CoRegularizedRidgeClassifierCV"]
    assert examined(X80, SIGN, *names).vote_estimator == names[1]
    board = compare(X80, SIGN, estimators=names[:1], cv=2)
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
    "one view": (X80[["a"]], SIGN, {"estimators": ["MaxMarginClassifier"]}, "MaxMarginClassifier uses a single view"),
    "a single view is the best": (X80, SIGN, {"estimators": ["a alone"]}, "a alone uses a single view"),
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
        "neg_mean_squared_error -[0-9.]+ ",
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
    text = text_of(examined(X, y, **{"inner_cv": 2, **options}))
    assert "<h3>Leaderboard</h3>" in text
    assert re.search(words, text)


def test_classes_are_in_order_and_long_names_are_shortened(text_of):
    text = text_of(examined(cs.Views({"a" * 40: A, "b": B}), np.arange(80) % 12, "LateFusion", inner_cv=2))
    chart = text[text.index('aria-label="Confusion matrix') :]
    assert re.findall(r'text-anchor="end"[^>]*>(\d+)<', chart)[:12] == [str(k) for k in range(12)]
    assert f">{'a' * 13}…<" in text.replace(f"<title>{'a' * 40}</title>", "")


# -- the page
def test_the_page_needs_no_other_file(page, classes):
    text = page.read_text()
    assert not re.findall(r"https?:|@import|url\(|<link|<iframe|<img|srcset", text)
    assert set(re.findall(r"href=\"([^\"]*)\"", text)) == {"#part0", "#part1", "#part2"}
    assert text.count("<script") == text.count("</script>") == 1
    assert " style=" not in text  # the page's own policy forbids it
    for heading in ("Data", "Leaderboard", "Chosen model", "Importance of views", "Disagreement of views", "Errors"):
        assert text.count(f"<h3>{heading}</h3>") == 2
    headings = ("&lt;img src=x", "Confusion", "Calibration", "Learning curve", "Predicted and true", "bound:")
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
    scores = [float(v) for v in column(tab, board, 2)]
    assert scores == sorted(scores, reverse=True)
    head = tables.nth(board).locator("th")
    head.nth(1).locator("button").click()
    assert head.nth(1).get_attribute("aria-sort") == "ascending"
    assert [float(v) for v in column(tab, board, 2)] == sorted(scores)
    head.nth(1).locator("button").click()
    assert [float(v) for v in column(tab, board, 2)] == sorted(scores, reverse=True)
    head.nth(0).locator("button").focus()
    tab.keyboard.press("Enter")
    names = column(tab, board, 1)
    assert names == sorted(names, key=str.lower)
    assert head.nth(1).get_attribute("aria-sort") is None


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
