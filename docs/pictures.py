"""Make the pictures of these pages at every build. `python docs/pictures.py` also updates the one of the README.

These are all displays, the figure of the landing page, and screenshots of the report of `make demo` (build/demo.html).
"""

import argparse
import shutil
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import consilience as cs

HERE = Path(__file__).resolve().parent
MADE = HERE / "_made"
REPORT = HERE.parent / "build" / "demo.html"
WINDOWS = {
    "light": (1100, "light"),
    "dark": (1100, "dark"),
    "phone": (390, "light"),
}


def missing_views(path: Path) -> None:
    """Draw the accuracy on digits in four views against the share of missing views."""
    X, y = cs.datasets.load_digits_views(return_X_y=True)
    estimators = {
        "early fusion, SVM, means filled in": (
            cs.EarlyFusion(SVC(C=10)),
            "#7a7a7a",
            "s",
            "--",
        ),
        "late fusion, one SVM per view": (
            cs.LateFusion(SVC(C=10)),
            "#d55e00",
            "^",
            "-.",
        ),
        "co-regularized ridge": (
            cs.CoRegularizedRidgeClassifier(
                alpha=1e-4, agreement_penalty=1e-5
            ),
            "#0b4f8a",
            "o",
            "-",
        ),
    }
    shares = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for name, (estimator, color, marker, dashes) in estimators.items():
        means = [_accuracy(estimator, X, y, share) for share in shares]
        ax.plot(
            100 * shares,
            100 * np.array(means),
            dashes,
            color=color,
            marker=marker,
            label=name,
        )
    ax.set(
        xlabel="views missing at random (%)",
        ylabel="accuracy on digits (%)",
        title="Half of the views missing: accuracy is still near 98%",
    )
    ax.legend(frameon=False, loc="lower left")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _accuracy(
    estimator: object, X: cs.Views, y: np.ndarray, share: float
) -> float:
    """Return the held-out accuracy over three folds; every sample keeps a view."""
    rng = np.random.default_rng(0)
    mask = rng.random((len(y), len(X.names))) >= share
    bare = ~mask.any(axis=1)
    mask[bare, rng.integers(len(X.names), size=bare.sum())] = True
    views = cs.Views(X, mask=mask) if share else X
    scores = []
    for train, test in StratifiedKFold(
        3, shuffle=True, random_state=0
    ).split(y, y):
        model = make_pipeline(cs.PerView(StandardScaler()), estimator).fit(
            views[train], y[train]
        )
        scores.append(model.score(views[test], y[test]))
    return float(np.mean(scores))


def displays(folder: Path) -> None:
    """Draw one picture of each display for the guide."""
    X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    X = cs.PerView(StandardScaler()).fit_transform(X)
    drawn = {
        "weights": lambda: cs.ViewWeightsDisplay.from_estimator(
            cs.MultipleKernelRidgeClassifier(p=1).fit(X, y)
        ),
        "metric": lambda: cs.MetricDisplay.from_estimator(
            cs.ViewMetricRidgeClassifier().fit(X, y)
        ),
        "agreement": lambda: cs.AgreementDisplay.from_estimator(
            cs.CoRegularizedRidgeClassifier().fit(X[::2], y[::2]), X[1::2]
        ),
        "importances": lambda: cs.FeatureImportancesDisplay.from_estimator(
            cs.CoRegularizedRidgeClassifier("linear").fit(X[::2], y[::2]),
            X[1::2],
            max_rows=12,
        ),
        "gram": lambda: cs.GramDisplay.from_views(X, y),
        "gap": lambda: cs.GapDisplay.from_estimator(
            cs.CoRegularizedSVC(alpha=1e-4), X, y
        ),
        "nystroem": lambda: cs.NystroemCurveDisplay.from_estimator(
            cs.CoRegularizedRidgeClassifier(alpha=1e-4),
            X,
            y,
            n_components=(10, 20, 40, 80, 160),
        ),
        "mistakes": lambda: cs.MistakesDisplay.from_estimator(
            cs.KernelPerceptron("rbf").partial_fit(X, y), X, y
        ),
    }
    for name, draw in drawn.items():
        display = draw()
        display.figure_.savefig(
            folder / f"{name}.png", dpi=110, bbox_inches="tight"
        )
        plt.close(display.figure_)


def screenshots(folder: Path) -> bool:
    """Take screenshots of the report in light, in dark and on a phone; return False without a browser."""
    chromium = next(
        (
            p
            for p in map(
                shutil.which,
                ("chromium", "chromium-browser", "google-chrome"),
            )
            if p
        ),
        None,
    )
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return False
    if chromium is None or not REPORT.exists():
        return False
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu"],
        )
        for name, (width, scheme) in WINDOWS.items():
            tab = browser.new_page(
                viewport={"width": width, "height": 1500},
                color_scheme=scheme,
            )
            tab.goto(REPORT.as_uri())
            tab.screenshot(path=folder / f"report_{name}.png")
        browser.close()
    return True


def make(folder: Path = MADE) -> None:
    """Make everything that the pages show."""
    folder.mkdir(exist_ok=True)
    missing_views(folder / "missing_views.png")
    displays(folder)
    has_screenshots = screenshots(folder)
    shot = "```{{image}} ../_made/report_{0}.png\n:alt: the report, {0}\n:class: {0}\n```"
    shown = "\n\n".join(shot.format(name) for name in WINDOWS)
    words = "No screenshots: this build had no browser (playwright and Chromium), or no report of `make demo`."
    (folder / "screenshots.md").write_text(
        shown if has_screenshots else words
    )
    extra = folder / "extra"
    extra.mkdir(exist_ok=True)
    if REPORT.exists():
        shutil.copy(REPORT, extra / "demo.html")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    make()
    static = HERE / "_static"
    shutil.copy(MADE / "missing_views.png", static / "missing_views.png")
    sys.exit(0)
