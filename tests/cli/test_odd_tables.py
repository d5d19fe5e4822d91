"""The command line on odd files: column names, gaps, layouts, booleans, models of other files, mistakes."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from commands import ended, predicted, refused, run, summary
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import consilience as cs

rng = np.random.default_rng(0)
A, B = rng.normal(size=(120, 3)), rng.normal(size=(120, 2))
F = A[:, 0] + np.sin(2 * B[:, 0]) + 0.3 * rng.normal(size=120)
TABLE = pd.DataFrame({"p": A[:, 0], "q": A[:, 1], "r": B[:, 0], "y": np.where(F > 0, "up", "down")})
FOLDS = ("--cv", 2, "-j", 1)


def written(frame, path):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


def only_the_table(said):
    """Whether a command said nothing to standard error but what it read."""
    first, *rest = said.splitlines()
    return first.startswith("Read ") and all(line.startswith("  ") for line in rest)


@pytest.fixture
def table(tmp_path):
    written(TABLE[:80], tmp_path / "train.csv")
    written(TABLE[80:], tmp_path / "test.csv")
    return tmp_path


def test_models_of_files_with_gaps_are_saved_and_take_gaps_later(table):
    frame = TABLE[:80].copy()
    frame.iloc[::9, 0] = None
    written(frame, table / "holes.csv")
    model, report = table / "m.cons", table / "r.html"
    for file in ("holes.csv", "train.csv"):
        run("fit", table / file, "-y", "y", "-e", "LateFusion", "--save", model)
        for other in ("holes.csv", "test.csv"):
            assert summary("evaluate", model, table / other, "-y", "y")["accuracy"] > 0.5
    words = ("compare", table / "holes.csv", "-y", "y", "-e", "EarlyFusion", *FOLDS)
    assert "accuracy on 80 held-out samples" in run(*words, "--save", model, "--report", report).stdout
    assert report.exists()
    assert len(cs.load(model).predict(cs.Views(holes=frame[["p", "q", "r"]]))) == 80


def test_a_layout_may_name_the_target(table):
    (table / "l.toml").write_text('target = "y"\n[views]\na = ["p", "q"]\nb = "r"\n')
    given = (table / "train.csv", "--views", table / "l.toml")
    assert summary("compare", *given, "-e", "OnlinePerceptron", *FOLDS)["views"] == ["a", "b"]
    assert summary("stream", *given)["samples"] == 80


def test_booleans_are_numbers(table):
    frame = pd.DataFrame({"a__flag": A[:, 0] > 0, "b__x": B[:, 0], "y": F > 0})
    files = [written(frame, table / name) for name in ("b.csv", "b.parquet")]
    assert len({summary("stream", file)["mistakes"] for file in files}) == 1
    for file in files:
        assert summary("compare", file, "-y", "y", "-e", "OnlinePerceptron", *FOLDS)["views"] == ["a", "b"]


# -- what a model knows, against what files have
@pytest.mark.parametrize("how", ["fit -e MaxMarginClassifier --no-scale", "stream"])
def test_names_of_columns_decide_where_there_is_one_view(how, table):
    train, model, new = table / "train.csv", table / "m.cons", table / "new.csv"
    run(*how.split(), train, "-y", "y", "--save", model)
    found = summary("evaluate", model, table / "test.csv", "-y", "y")
    assert found["samples"] == 40
    assert found["accuracy"] > 0.6
    whole = predicted(model, train)
    assert len(whole) == 80
    written(TABLE[:80][["y", "r", "q", "p"]].assign(more=1.0, text="x"), new)
    assert predicted(model, new) == whole
    written(TABLE.rename(columns={"p": "p_cm", "q": "q_cm", "r": "r_kg"}), new)
    view = "train" if how != "stream" else "view0"
    assert refused("predict", model, new) == (
        f"The model was fitted on the view '{view}' with the column 'p', which 'new.csv' does not have: it has 'p_cm', "
        "'q_cm', 'r_kg', 'y'. Give the columns by the names they had at fit."
    )
    written(TABLE[["p", "r"]].assign(q_cm=TABLE["q"]), new)
    assert f"View '{view}' has no column 'q'" in refused("predict", model, new)
    (table / "v.toml").write_text('[views]\nbody = ["r", "q*", "p*"]\n')
    assert predicted(model, train, "--views", table / "v.toml") == whole
    (table / "v.toml").write_text('[views]\nbody = ["p*"]\n')
    assert f"View '{view}' has no column 'q'" in refused("predict", model, train, "--views", table / "v.toml")


def test_names_of_columns_decide_where_there_are_several_views(tmp_path):
    wide = TABLE.rename(columns={"p": "a__p", "q": "a__q", "r": "b__r"})
    files = {
        "wide": wide, "other": wide[["y", "b__r", "a__q", "a__p"]].assign(more=1.0), "b": wide,  # called like a view
        "less": wide[["a__p", "b__r"]], "one": wide[["b__r"]],
    }  # fmt: skip
    paths = {name: written(frame, tmp_path / f"{name}.csv") for name, frame in files.items()}
    model = tmp_path / "m.cons"
    run("fit", paths["wide"], "-y", "y", "-e", "LateFusion", "--save", model)
    done = run("predict", model, paths["b"], "--json")
    assert done.stderr == ""
    assert predicted(model, paths["wide"]) == predicted(model, paths["other"]) == predicted(model, paths["b"])
    assert "View 'a' has no column 'a__q'" in refused("predict", model, paths["less"])
    assert len(predicted(model, paths["one"])) == 120  # a whole view may be missing


def kinds_of_views(path):
    """A file whose class is in a view that has no names of columns, and noise in another."""
    y = np.array(["p", "q"] * 20)
    noise, signal = np.random.default_rng(0).normal(size=(40, 2)), np.c_[y == "p", y == "q"] * 1.0
    if path.suffix == ".npz":
        np.savez(path, noise=noise, signal=signal, y=y)
        return path
    values = np.where(y == "p", "the cat sat", "dogs bark") if path.name == "texts.csv" else signal.tolist()
    return written(pd.DataFrame({"signal": values, "n1": noise[:, 0], "n2": noise[:, 1], "y": y}), path)


@pytest.mark.parametrize(("name", "how"), [
    ("texts.csv", "compare --cv 2 -j 1 -e CoRegularizedRidgeClassifierCV"),
    ("lists.parquet", "compare --cv 2 -j 1 -e CoRegularizedRidgeClassifierCV"),
    ("lists.parquet", "fit -e CoRegularizedRidgeClassifier"),
    ("matrices.npz", "fit -e CoRegularizedRidgeClassifier"),
    ("matrices.npz", "fit --no-scale -e CoRegularizedRidgeClassifier"),
])  # fmt: skip
def test_no_view_is_lost_between_fit_and_predict(name, how, tmp_path):
    path, model = kinds_of_views(tmp_path / name), tmp_path / "m.cons"
    run(*how.split(), path, "-y", "y", "--save", model)
    assert only_the_table(run("evaluate", model, path, "-y", "y").stderr)
    found = summary("evaluate", model, path, "-y", "y")
    assert (found["accuracy"], found["balanced accuracy"], found["samples"]) == (1.0, 1.0, 40)
    assert [row["prediction"] for row in predicted(model, path)] == ["p", "q"] * 20


def test_a_view_that_no_file_has_is_told(tmp_path):
    path, model = kinds_of_views(tmp_path / "matrices.npz"), tmp_path / "m.cons"
    run("fit", path, "-y", "y", "-e", "CoRegularizedRidgeClassifier", "--save", model)
    arrays, less, other = dict(np.load(path)), tmp_path / "less.npz", tmp_path / "other.npz"
    np.savez(less, noise=arrays["noise"], y=arrays["y"])
    for words in (("predict", model, less), ("evaluate", model, less, "-y", "y"),
                  ("predict", model, less, "--out", tmp_path / "out.csv")):  # fmt: skip
        assert summary(*words)["missing views"] == ["signal"]
        for printed in ([], ["--json"]):
            told = run(*words, *printed).stderr
            assert "Views of the model that are missing in every sample: 'signal'." in told
            assert told.startswith("Views" if printed else "Read ")
    np.savez(other, other=arrays["noise"], y=arrays["y"])
    sentence = refused("predict", model, other)
    assert "fitted on the views 'noise', 'signal', none of which is in 'other.npz': it has 'y', 'other'." in sentence
    np.savez(other, signal=arrays["noise"][:, :1], y=arrays["y"])
    sentence = refused("predict", model, other)
    assert "View 'signal' has 1 columns in 'other.npz', but the model was fitted on 2" in sentence


@pytest.mark.parametrize("how", ["fit -e LateFusion", "stream"])
def test_libsvm_files_are_as_wide_as_the_model(how, tmp_path):
    train, less, more, model = (tmp_path / name for name in ("train.libsvm", "less.libsvm", "more.libsvm", "m.cons"))
    train.write_text("1 1:1 2:2 5:1\n0 1:2 3:1\n" * 20)
    less.write_text("1 1:1 2:2\n0 1:2 3:1\n" * 5)
    more.write_text("1 1:1 7:2\n0 1:2 3:1\n" * 5)
    run(*how.split(), train, "--save", model)
    assert summary("evaluate", model, less)["accuracy"] == 1.0
    assert "has 7 columns in 'more.libsvm', but the model was fitted on 5" in refused("predict", model, more)


def test_models_made_in_python_are_used_on_files(tmp_path):
    Z, y, model = cs.Views(a=A[:40] + 3 * (F[:40, None] > 0), b=B[:40]), F[:40] > 0, tmp_path / "m.cons"
    frame = pd.DataFrame({f"{view}__{j}": Z[view][:, j] for view in Z.names for j in range(Z[view].shape[1])})
    data = written(frame, tmp_path / "t.csv")
    estimator = make_pipeline(cs.PerView(PCA(2)), cs.LateFusion(LogisticRegression())).fit(Z, y)
    cs.save(estimator, model)  # whose last step knows pca0 and pca1, which no file has
    assert [row["prediction"] for row in predicted(model, data)] == estimator.predict(Z).tolist()
    cs.save(cs.kernels.RBF(), model)
    assert "m.cons' holds RBF, which does not say what views it was fitted on." in refused("predict", model, data)


# -- commands and files that are refused
@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that cannot be read, and files that do not suit some commands."""
    path = tmp_path_factory.mktemp("odd")
    frame = TABLE[:20].assign(id=range(20), group=[None, *range(19)], a__day=pd.Timestamp("2020-01-01"))
    written(frame[["p", "q", "r", "y"]], path / "t.csv")
    written(frame[["p", "group", "y"]], path / "groups.csv")
    written(frame[["p", "id", "y"]], path / "ids.csv")
    written(frame[["q"]].assign(id=[f"s{i}" for i in range(20)]), path / "more.csv")
    written(frame[["p", "a__day", "y"]], path / "days.parquet")
    contents = {
        "head.csv": b"a,y\n", "twice.csv": b"a,a,y\n1,2,x\n3,4,z\n", "latin.csv": b"a,y\n1,\xe9\n2,\xfc\n",
        "l.toml": b'target = "y"\n[views]\na = 5\n', "bad.cons": b"not a model",
    }  # fmt: skip
    for kind in ("npz", "csv", "tsv", "parquet", "libsvm", "h5ad", "jsonl"):
        contents[f"empty.{kind}"] = b""
    for name, content in contents.items():
        (path / name).write_bytes(content)
    return path


COMPARE, FIT = "-y y -e OnlinePerceptron --cv 2 -j 1", "-y y -e LateFusion --save m"
REFUSED = {
    # options
    "fit t.csv -y y -e Foo --save m": "There is no estimator 'Foo'. `consilience estimators` lists them.",
    "fit t.csv -y y -e CoRegularizedSVC --set alpha --save m": "--set takes name=value; got 'alpha'.",
    "compare t.csv -y y -e Foo": "`estimators` must name candidates for these data; got 'Foo'.",
    "compare t.csv -y y -j 0": "--jobs is at least 1, or -1 for all cores; got 0.",
    "compare t.csv": "Name the column of the class or target by --target (-y), or in the TOML file.",
    "fit t.csv -e LateFusion --save m": "Name the column of the class or target by --target (-y), or in the TOML file.",
    "compare t.csv -y y --report .": "is a folder. Name a file to write.",
    "fit t.csv -y y -e LateFusion --save no/m.cons": "does not exist. Create it first.",
    "stream t.csv --report no/r.html": "does not exist. Create it first.",
    f"compare t.csv {COMPARE} --groups doctor": "No column 'doctor' is in 't.csv', only 'p', 'q', 'r'.",
    f"compare groups.csv {COMPARE} --groups group": "1 samples have no group. Complete the column of --groups.",
    "compare t.csv -y y --views odd": "`views` is a dict of view -> columns, 'prefix', a .toml file or None",
    "compare t.csv -y y --views prefix": "Column 'p' has no view prefix. With views='prefix', columns of the view "
    "audio are named 'audio__something'.",
    f"fit t.csv {FIT} --views l.toml": "View 'a' of 't.csv' is given as numbers; give the names",
    # files
    "compare none.parquet -y y": "There is no file or folder",
    "compare ids.csv more.csv -y y": "Several files are matched by a column that names the samples",
    "compare ids.csv more.csv -y y --id who": "has no column 'who'",
    "compare ids.csv more.csv -y y --id id": "No sample of 'ids.csv' is in another file",
    "compare days.parquet -y y": "'days.parquet': column 'a__day' has dates or times.",
    "stream days.parquet": "'days.parquet': column 'a__day' has dates or times.",
    "inspect bad.cons": "is not a model file of consilience",
    f"fit twice.csv {FIT}": "'twice.csv' has two columns named 'a'.",
    f"fit head.csv {FIT}": "'head.csv' has no samples.",
    f"fit latin.csv {FIT}": "'latin.csv' is not encoded in UTF-8",
    "stream head.csv": "The stream has no samples with a target. Check whether 'head.csv' is empty",
    "stream empty.jsonl": "The stream has no samples with a target. Check whether 'empty.jsonl' is empty",
    "stream empty.libsvm": "The stream has no samples with a target. Check whether 'empty.libsvm' is empty",
    f"fit empty.libsvm {FIT}": "'empty.libsvm' has no samples.",
    **{
        f"fit empty.{kind} {FIT}": f"'empty.{kind}' cannot be read" for kind in ("npz", "csv", "tsv", "parquet", "h5ad")
    },
    **{f"stream empty.{kind}": f"'empty.{kind}' cannot be read" for kind in ("csv", "parquet")},
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_refusal_is_one_sentence_and_nothing_is_written(words, folder, monkeypatch):
    if "h5ad" in words:
        pytest.importorskip("anndata", reason="anndata is not installed")
    monkeypatch.chdir(folder)
    before = sorted(os.listdir())
    assert REFUSED[words] in refused(*words.split())
    assert sorted(os.listdir()) == before


def test_errors_of_a_process(folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = ("fit", "t.csv", "-y", "none", "-e", "LateFusion", "--save", "m.cons")
    done = subprocess.run([sys.executable, "-m", "consilience.cli.main", *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "Error: No column 'none' is in 't.csv', only 'p', 'q', 'r', 'y'. Give the name of a column"
    )
    assert "Traceback" not in done.stderr
    assert not os.path.exists("m.cons")
    for unknown in (("fit",), ("compare", "t.csv", "-y", "y", "--task", "numbers")):
        assert ended(*unknown)[0] == 2
    monkeypatch.setenv("CONSILIENCE_DEBUG", "")
    with pytest.raises(ValueError, match=r"No column 'none' is in 't.csv'"):
        ended("--debug", *words)


def test_an_end_of_file_from_anywhere_is_an_error(monkeypatch):
    def cut(*_, **__):
        raise EOFError("No data left in file")

    monkeypatch.setattr("consilience.io.model_files.load", cut)
    code, said = ended("inspect", "m.cons")
    assert (code, said.strip()) == (1, "Error: A file ends too early: No data left in file")
