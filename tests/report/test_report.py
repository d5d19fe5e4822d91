"""Reports: the numbers are right, the page stands alone, and a browser shows it as meant."""

import re
import shutil
from html import escape

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

import consilience as cs
from consilience.evaluation.comparison import candidates, compare
from consilience.report import StreamFindings, examine, write_report
from consilience.report._charts import _Axis
from consilience.report._page import in_words
from consilience.solvers.certificates import Certificate

HOSTILE = "<img src=x onerror=\"console.error('ran')\">"
TITLE = "</script><script>console.error('ran')</script>"


@pytest.fixture(scope="module")
def classes():
    """Breast cancer with a third of the rows without one view, hostile names."""
    X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    X, y = X[:240], np.array([HOSTILE, "benign & 'fine'"])[y[:240]]
    mask = np.ones((240, 3), dtype=bool)
    mask[::3, 1] = False
    X = cs.Views({"mean": X["mean"], HOSTILE: X["error"], "worst": X["worst"]}, mask=mask)
    names = ["ViewMetricRidgeClassifierCV", "CoRegularizedSVC", "LateFusion", "worst alone", "mean alone"]
    board = compare(X, y, learners=names, folds=3)
    return X, y, board, examine(X, y, board, title=TITLE, ids=[f"<b>{i}</b>" for i in range(240)])


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = cs.Views({"a": rng.normal(size=(120, 3)), "b": rng.normal(size=(120, 2))})
    y = X["a"][:, 0] - X["b"][:, 1] + 0.2 * rng.normal(size=120)
    return examine(X, y, compare(X, y, folds=3), title="Numbers")


@pytest.fixture(scope="module")
def stream():
    X, y = cs.datasets.make_views(n_samples=400, n_classes=2, random_state=0, return_X_y=True)
    model, other = cs.KernelPerceptron("rbf"), cs.OnlinePerceptron()
    result = cs.progressive_validation(model, X, y)
    others = {"OnlinePerceptron": cs.progressive_validation(other, X, y)}
    return StreamFindings("A stream", "KernelPerceptron", result, model.certificate(X, y), others)


@pytest.fixture(scope="module")
def page(classes, numbers, stream, tmp_path_factory):
    return write_report(tmp_path_factory.mktemp("report") / "r.html", [classes[3], numbers, stream], title=TITLE)


# -- the numbers
def test_losses_are_those_of_fitting_without_the_view(classes):
    X, y, board, found = classes
    row = next(row for row in board if row.name == found.judge)
    for name in X.names:
        less = X[[other for other in X.names if other != name]]
        lost = []
        for (train, test), chosen in zip(board.splits, row.parameters, strict=True):
            model = candidates(less, y)[row.name][0].set_params(**chosen).fit(less[train], y[train])
            lost.append(accuracy_score(y[test], row.answers[test]) - model.score(less[test], y[test]))
        mean, low, high = found.losses[name]
        assert mean == pytest.approx(np.mean(lost))
        half = 4.302652729911275 * np.sqrt((1 / 3 + 1 / 2) * np.var(lost, ddof=1))  # Student's t, 2 degrees, 97.5 %
        assert (high - low) / 2 == pytest.approx(half)


def test_held_out_answers_make_the_scores(classes):
    _, y, board, found = classes
    for row in board:
        for score, (_, test) in zip(row.scores, board.splits, strict=True):
            assert score == pytest.approx(np.mean(row.answers[test] == y[test]))
    agreed, disputed = found.agreed, found.disputed
    assert agreed[0] + disputed[0] == 240
    speaker = next(row for row in board if row.name == found.speaker)
    right = agreed[0] * agreed[1] + disputed[0] * disputed[1]
    assert right == pytest.approx(np.sum(speaker.answers == y))
    for row in found.disagreements:
        i = int(re.sub(r"\D", "", row.sample))
        assert (row.answer, row.truth) == (speaker.answers[i], y[i])
        assert len({vote for vote in row.votes if vote}) > 1
        assert (row.votes[1] == "") == (i % 3 == 0)
    spreads = [row.spread for row in found.disagreements]
    assert spreads == sorted(spreads, reverse=True)


def test_patterns_alignments_calibration_curve(classes):
    _, y, board, found = classes
    assert found.patterns == [((True, True, True), 160), ((True, False, True), 80)]
    np.testing.assert_allclose(found.alignments, found.alignments.T)
    np.testing.assert_allclose(np.diag(found.alignments), 1)
    assert found.alignments[0, 2] > found.alignments[0, 1]  # means and worst values are alike
    confidence, share, counts = found.calibration.T
    assert counts.sum() == 240
    assert (np.diff(confidence) >= 0).all()
    assert np.average(share, weights=counts) == pytest.approx(np.mean(board[0].answers == y))
    assert found.curve[-1].tolist() == [160, board[0].score, board[0].low, board[0].high]
    assert (np.diff(found.curve[:, 0]) > 0).all()


def test_alignment_is_of_samples_that_have_both():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(80, 3))
    mask = np.ones((80, 2), dtype=bool)
    mask[40:, 1] = False
    b = np.vstack([a[:40], rng.normal(size=(40, 3))])
    X, y = cs.Views({"a": a, "b": b}, mask=mask), np.arange(80) % 2
    found = examine(X, y, compare(X, y, learners=["LateFusion"], folds=2))
    assert found.alignments[0, 1] == pytest.approx(1.0)


def test_perfect_answers_have_no_calibration_and_an_honest_interval():
    y = np.array(["p", "q"] * 40)
    rng = np.random.default_rng(0)
    views = {"a": 10.0 * (y == "p")[:, None] + rng.normal(size=(80, 1)), "w": np.where(y == "p", "pear", "quince")}
    X = cs.Views({"a": views["a"], "w": views["w"].tolist()})
    board = compare(X, y, folds=2)
    assert board[0].score == 1.0
    assert 0.9 < board[0].low < 0.99  # 80 samples cannot show more
    found = examine(X, y, board)
    assert found.calibrated_by == ""
    assert "EarlyFusion" not in {row.name for row in board}  # words are no columns


def test_one_view_and_one_learner(tmp_path):
    X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    X, y = X[["worst"]][:100], y[:100]
    found = examine(X, y, compare(X, y, learners=["MaxMarginClassifier"], folds=2))
    assert not found.losses
    assert "Leaderboard" in write_report(tmp_path / "r.html", found).read_text()


def test_many_classes_are_told_by_their_confusions(tmp_path):
    rng = np.random.default_rng(0)
    y = np.array([f"class {i % 30}" for i in range(300)])
    centers = rng.normal(size=(30, 6))[np.arange(300) % 30]
    Z = centers + 0.8 * rng.normal(size=(300, 6))
    X = cs.Views({"a": Z[:, :3], "b": Z[:, 3:]})
    found = examine(X, y, compare(X, y, learners=["LateFusion"], folds=2))
    text = write_report(tmp_path / "r.html", found).read_text()
    assert "The most frequent confusions of 30 classes" in text


def test_parallel_is_the_same():
    X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    names = ["PassiveAggressive", "error alone"]
    one = compare(X[:120], y[:120], learners=names, folds=2)
    two = compare(X[:120], y[:120], learners=names, folds=2, n_jobs=2)
    assert [(row.name, row.scores) for row in one] == [(row.name, row.scores) for row in two]


def test_names_of_samples_must_fit(classes):
    X, y, board, _ = classes
    with pytest.raises(ValueError, match="240 samples and 3 names"):
        examine(X, y, board, ids=[1, 2, 3])


def test_certificates_in_words():
    said = in_words(Certificate(status="converged", objective=1.0, gap=3e-7))
    assert said == "Gap 3e-07: within 0.00003 % of the optimum."
    assert "up to rounding" in in_words(Certificate(status="exact", objective=1.0, gap=1e-15))
    assert in_words(Certificate(status="exact")) == "Solved directly: no iteration was cut short."
    assert "hold to 2e-05" in in_words(Certificate(status="settled", residual=2e-5))


def test_ticks_are_few_and_inside():
    for low, high in [(0, 1), (-0.03, 0.11), (1e-7, 3e-7), (900, 1203), (0, 0), (-5, 1e6)]:
        axis = _Axis(low, high, 0, 100)
        ticks = axis.ticks()
        assert 1 <= len(ticks) <= 8
        assert all(-1e-6 <= axis(value) <= 100 + 1e-6 for value in ticks)
        assert len({axis.text(value) for value in ticks}) == len(ticks)
    assert _Axis(1, 1797, 0, 100, log=True).ticks() == [1, 10, 100, 1000]


# -- the page
def test_the_page_stands_alone(page, classes):
    text = page.read_text()
    assert not re.findall(r"https?:|@import|url\(|<link|<iframe|<img|srcset", text)
    assert set(re.findall(r"href=\"([^\"]*)\"", text)) == {"#part0", "#part1", "#part2"}
    assert text.count("<script") == text.count("</script>") == 1
    assert "&lt;img src=x" in text
    assert " style=" not in text  # the page's own policy forbids it
    for heading in ("The data at a glance", "Leaderboard", "The chosen model", "Which views matter",
                    "Where views disagree", "Right and wrong"):  # fmt: skip
        assert text.count(f"<h3>{heading}</h3>") == 2
    for words in (
        escape(in_words(classes[3].certificate)),
        "Confusion",
        "Calibration",
        "Learning curve",
        "Predicted and true",
        "bound:",
    ):
        assert words in text
    assert "nan" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.S).lower().split()


def test_writing_is_whole_or_not_at_all(stream, tmp_path):
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
    """The report in a window, and what went wrong there."""
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
    board = next(k for k in range(tables.count()) if "learner" in tables.nth(k).inner_text().splitlines()[0])
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
