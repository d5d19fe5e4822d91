"""The command line with drawn words and odd files: exit code 0, 1 or 2 with a sentence, never a traceback."""

import contextlib
import functools
import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from consilience.cli import main as entry
from fuzzing.parsers import SOUND_CSV, SOUND_JSON, SOUND_LIBSVM, SOUND_TOML, mutated
from fuzzing.properties import FOLDER, Refused, check_sentence, describe, explain
from strategies import chance, pick

# what an option is drawn from; a flag has nothing
COLUMNS = ["y", "x", "id", "a__1", "none", "", "s"]
FILES = ["out.csv", "out.jsonl", "new.cons", "", "nowhere/out.csv", ".", "good.csv", "/dev/null"]
OPTIONS = {
    "--target": COLUMNS, "--views": ["prefix", "views.toml", "odd.toml", "none.toml", "x"], "--id": COLUMNS,
    "--encoding": ["latin-1", "utf-16", "none", "cp1252"], "--na": ["1", "NA", ""], "--libsvm-base": ["0", "1", "2"],
    "--groups": COLUMNS, "--weights": COLUMNS, "--batch": COLUMNS,
    "--class-weight": ["balanced", "p=2", "p", "p=x", "=1"],
    "--set": ["alpha=1", "alpha=-1", "alpha=x", "kernel=rbf", "kernel=none", "max_iter=1", "none=1", "alpha", "=",
              "kernel={\"a\": \"linear\"}", "view_weights=learned", "C=0", "alpha=1e400", "alpha=[1]"],
    "--task": ["classification", "regression", "other"], "--prepare": ["standardize", "log", "top_k:1", "a=drop",
    "none", "variance:x", "top_k:0", "=", "impute"], "--top-k": ["1", "0", "99"], "--coverage": ["0.9", "0", "2"],
    "--missing-columns": ["raise", "fill", "x"], "--out": FILES, "--report": ["report.html", "nowhere/r.html", ""],
    "--estimator": ["CoRegularizedRidge", "coregularized-ridge-classifier", "EarlyFusion", "OnlinePerceptron", "None",
                    "PassiveAggressive", "MaxMarginClassifier", ""],
    "--scoring": ["accuracy", "r2", "none", "accuracy,f1_macro", ""], "--cv": ["2", "1", "99"], "--repeats": ["1", "0"],
    "--jobs": ["1", "0", "x"], "--seed": ["0", "-1", "x"], "--csv": FILES, "--format": ["csv", "jsonl", "tsv", "x"],
    "--on-error": ["stop", "skip", "x"], "--quarantine": FILES, "--measures": ["error", "none", "mae,r2", ""],
    "--window": ["5", "0"], "--on-drift": ["tell", "forget", "restart", "lower_view"], "--predictions": FILES,
    "--log": ["-", "log.jsonl", "nowhere/log"], "--log-every": ["1", "0"],
    "--checkpoint": ["state.cons", "model.cons", ".", "odd.cons"], "--every": ["1", "0"],
    "--model": ["model.cons", "odd.cons", "good.csv", "none"], "--objects": COLUMNS,
    "--folds": ["folds.jsonl", "good.csv", "odd.jsonl", "nowhere/folds", ".", "", "/dev/null", "model.cons"],
}  # fmt: skip
FLAGS = ["--transpose", "--json", "--share", "--scale", "--no-scale", "--proba", "--by-view", "--drift", "--resume",
         "--all", "--baselines", "--no-baselines", "--debug", "--help", "--none", "-x", "--"]  # fmt: skip
SHARED = ["--views", "--id", "--encoding", "--na", "--libsvm-base", "--transpose", "--json"]
# command: words before the options, and its own options
COMMANDS = {
    "fit": (["DATA"], [*SHARED, "--target", "--estimator", "--groups", "--weights", "--class-weight", "--set", "--task",
                       "--prepare", "--top-k", "--batch", "--scale", "--no-scale", "--share"]),
    "predict": (["MODEL", "DATA"], [*SHARED, "--out", "--proba", "--coverage", "--missing-columns"]),
    "evaluate": (["MODEL", "DATA"], [*SHARED, "--target", "--missing-columns", "--report"]),
    "inspect": (["MODEL"], ["--json"]),
    "stream": (["DATA"], [*SHARED, "--target", "--estimator", "--model", "--task", "--weights", "--set", "--format",
                          "--objects", "--on-error", "--quarantine", "--measures", "--window", "--by-view", "--drift",
                          "--on-drift", "--predictions", "--log", "--log-every", "--checkpoint", "--every",
                          "--resume"]),
    "compare": (["DATA"], [*SHARED, "--target", "--groups", "--weights", "--class-weight", "--task", "--scoring",
                           "--cv", "--prepare", "--repeats", "--seed", "--csv", "--folds"]),
    "estimators": ([], ["--json"]),
    "kernels": ([], ["--json"]),
    "reproduce": ([], ["--json", "--seed"]),
}  # fmt: skip
OFTEN = [*["fit"] * 6, *["predict"] * 6, *["evaluate"] * 3, *["stream"] * 5, *["inspect"] * 2, *COMMANDS]


@functools.cache
def scratch():
    """Return a folder with sound files: a table, a model, and views in TOML."""
    folder = Path(FOLDER.name) / "scratch"
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(3)
    labels = np.array(["p", "q"])[np.arange(12) % 2]
    table = pd.DataFrame(rng.normal(size=(12, 3)) + (labels == "p")[:, None], columns=["a__1", "a__2", "b__1"])
    table.assign(y=labels).to_csv(folder / "good.csv", index=False)
    (folder / "views.toml").write_text('[views]\na = "a__*"\nb = ["b__1"]\n')
    for name, content in {"t.jsonl": SOUND_JSON[0], "t.libsvm": SOUND_LIBSVM[0], "t.csv": SOUND_CSV[0]}.items():
        (folder / name).write_bytes(content)
    with working_in(folder):
        done = call(["fit", "good.csv", "-y", "y", "-e", "CoRegularizedRidgeClassifier", "--save", "model.cons"])
        assert done.code == 0, done.errors
        (folder / "stream.cons").unlink(missing_ok=True)
        done = call(["stream", "good.csv", "-y", "y", "--save", "stream.cons"])
        assert done.code == 0, done.errors
    return folder, {path.name: path.read_bytes() for path in folder.iterdir()}


@contextlib.contextmanager
def working_in(folder):
    """Work in a folder; what the command line changes in this process is put back."""
    before, environment, words = os.getcwd(), dict(os.environ), sys.argv
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        sys.argv = words
        os.environ.clear()
        os.environ.update(environment)


def call(words, given=""):
    """Run a command in this process; return its exit code, its output, its errors, and the exception behind them."""
    output, errors, error, code = io.StringIO(), io.StringIO(), None, 0
    sys.argv, standard = ["consilience", *words], sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            entry.main()
    except SystemExit as ended:  # its context is the exception that was told in a sentence
        code, error = ended.code or 0, ended.__context__
    finally:
        sys.stdin = standard
    return SimpleNamespace(code=code, output=output.getvalue(), errors=errors.getvalue(), error=error)


def drawn_words(rng):
    """Return the words of a command: mostly those it takes, with sound or odd values."""
    command = pick(rng, OFTEN)
    places, own = COMMANDS[command]
    data = [
        "good.csv",
        "good.csv",
        "odd.csv",
        "odd.jsonl",
        "odd.libsvm",
        "t.csv",
        "t.jsonl",
        "t.libsvm",
        "none.csv",
        ".",
        "-",
    ]
    files = {"DATA": data, "MODEL": ["model.cons", "model.cons", "stream.cons", "odd.cons", "good.csv", "none.cons"]}
    words = [command, *(pick(rng, files[place]) for place in places if chance(rng, 0.97))]
    if command in ("fit", "stream", "compare", "evaluate") and chance(rng, 0.9):
        words += ["--target", "y"]
    if command == "fit" and chance(rng, 0.95):
        words += ["--save", pick(rng, ["new.cons", "new.cons", "nowhere/new.cons", "."])]
    if command in ("fit", "compare") and chance(rng, 0.9):  # the default is slower
        words += ["--estimator", pick(rng, OPTIONS["--estimator"])]
    if command == "compare":  # in this process
        words += ["--jobs", "1", "--cv", "2", "--no-baselines"]
    if command == "reproduce" and chance(rng, 0.5):
        words += [pick(rng, ["--list", "none", "--page"])]
    for _ in range(int(rng.integers(0, 3))):
        name = pick(rng, own) if chance(rng, 0.95) else pick(rng, [*OPTIONS, *FLAGS])
        value = [pick(rng, OPTIONS[name])] if name in OPTIONS else []
        words += ["--resume" if name == "--folds" else name, *value]  # a flag of `stream`, a file of `compare`
    return words if chance(rng, 0.97) else [words[i] for i in rng.permutation(len(words))]


def fuzz_commands(rng):
    """Run a command on sound and odd files: 0, 1 or 2, one sentence for an error, never a traceback."""
    folder, sound = scratch()
    for path in folder.iterdir():
        if path.name not in sound or path.stat().st_size != len(sound[path.name]):
            path.unlink()
    for name, content in sound.items():
        if not (folder / name).exists():
            (folder / name).write_bytes(content)
    texts = {"csv": [sound["good.csv"], *SOUND_CSV], "jsonl": SOUND_JSON, "libsvm": SOUND_LIBSVM, "toml": SOUND_TOML}
    words = drawn_words(rng)
    for form, contents in (*texts.items(), ("cons", [sound["model.cons"], sound["stream.cons"]])):
        if any(f"odd.{form}" in word for word in words):
            known = {"jsonl": "json", "cons": "binary"}.get(form, form)
            (folder / f"odd.{form}").write_bytes(mutated(rng, pick(rng, contents), contents, known))
    given = mutated(rng, pick(rng, SOUND_JSON), SOUND_JSON, "json").decode("utf-8", "replace") if "-" in words else ""
    describe(lambda: f"consilience {' '.join(words)!r}")
    with working_in(folder):
        os.environ.pop("CONSILIENCE_DEBUG", None)
        try:
            done = call(words, given)
        except Exception as error:  # --debug shows exceptions as they are
            if "--debug" not in words:
                raise AssertionError(explain(error)) from error
            raise Refused("shown by --debug") from error
    check_ending(done, words)


def check_ending(done, words):
    """Check the exit code, the sentence, and what is behind it."""
    assert done.code in (0, 1, 2), f"exit code {done.code!r}: {done.errors[-300:]!r}"
    assert "Traceback" not in done.errors + done.output, f"a traceback: {done.errors[-600:]}"
    if done.code == 0:
        return
    assert done.errors.strip(), f"exit code {done.code} without a word"
    if done.code == 2:
        raise Refused("not understood: " + done.errors.strip().splitlines()[-1])
    last = done.errors.strip().splitlines()[-1]
    assert last.startswith("Error: "), f"the last line is {last!r}"
    allowed = isinstance(done.error, (ValueError, TypeError, OSError, ImportError, EOFError)) or done.error is None
    assert allowed, f"{explain(done.error)} is told as {last!r}"
    text = done.errors[done.errors.rindex("Error: ") + 7 :].strip()
    check_sentence(ValueError(text))
    raise Refused(text)


def warm_up():
    """Run the slow parts once, so that packages are imported and functions compiled."""
    folder, _ = scratch()
    with working_in(folder):
        for words in (["predict", "model.cons", "good.csv"], ["inspect", "model.cons"], ["estimators"], ["kernels"]):
            call(words)
