"""Data sets: the truth of the generators; how files are found, checked, parsed and cached; the contents of the sets."""

import io
import pickle
import re
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from original_files import lines, zipped
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience.datasets as datasets
from consilience.datasets import _parsers, _sets, _store, make_regression_views, make_sheared_views, make_views
from consilience.datasets._fetch import DataSet
from consilience.views.container import Views

SETS = {name: value for name, value in vars(_sets).items() if isinstance(value, DataSet)}
SOURCES = [source for data_set in SETS.values() for source in data_set.sources]


def accuracy(X, y, names):
    model = make_pipeline(StandardScaler(), LogisticRegression()) if y.dtype.kind == "i" else RidgeCV()
    return float(cross_val_score(model, np.hstack([X[name] for name in names]), y, cv=5).mean())


# -- make_views
@pytest.mark.parametrize("n_classes", [2, 4, None])
def test_informative_views_predict_and_noise_does_not(n_classes):
    make, chance = (
        (partial(make_views, n_classes=n_classes), 1 / n_classes) if n_classes else (make_regression_views, 0.0)
    )
    X, y, truth = make(600, redundant=1, noise=2, random_state=0, return_truth=True)
    together = accuracy(X, y, truth.informative_views)
    alone = [accuracy(X, y, (name,)) for name in truth.informative_views]
    assert together > max(alone) + 0.05
    assert min(alone) > chance + 0.2
    assert accuracy(X, y, truth.noise_views) < chance + 0.06
    assert abs(accuracy(X, y, truth.informative_views + truth.redundant_views) - together) < 0.03


@pytest.mark.parametrize("seed", range(5))
def test_default_separation_is_neither_trivial_nor_hopeless(seed):
    X, y, truth = make_views(600, random_state=seed, return_truth=True)
    assert 0.85 < accuracy(X, y, truth.informative_views) < 0.97
    assert all(0.75 < accuracy(X, y, (name,)) < 0.88 for name in truth.informative_views)


def test_latent_is_the_clean_signal():
    X, _, truth = make_views(view_noise=0.0, redundant=1, random_state=0, return_truth=True)
    for name in (*truth.informative_views, *truth.redundant_views):
        shown = truth.latent @ np.linalg.lstsq(truth.latent, X[name])[0]
        np.testing.assert_allclose(shown, X[name], atol=1e-10)


def test_class_centers_are_two_separations_apart():
    _, y, truth = make_views(60_000, n_classes=3, informative=1, class_sep=2.0, random_state=0, return_truth=True)
    centers = np.array([truth.latent[y == k].mean(axis=0) for k in range(3)])
    distances = [np.linalg.norm(centers[i] - centers[j]) for i, j in [(0, 1), (0, 2), (1, 2)]]
    np.testing.assert_allclose(distances, 4.0, atol=0.06)


def test_regression_target_is_the_clean_one_plus_noise():
    _, y, truth = make_regression_views(5000, n_outputs=3, target_noise=0.5, random_state=0, return_truth=True)
    assert y.shape == truth.target.shape == (5000, 3)
    np.testing.assert_allclose(truth.target.std(axis=0), 1.0, atol=0.05)
    np.testing.assert_allclose((y - truth.target).std(axis=0), 0.5, atol=0.03)
    residual = truth.target - truth.latent @ np.linalg.lstsq(truth.latent, truth.target)[0]
    np.testing.assert_allclose(residual, 0.0, atol=1e-10)
    assert make_regression_views(30, random_state=0)[1].shape == (30,)


def test_seed_decides_everything():
    first, again, other = (make_views(50, missing=0.2, random_state=seed) for seed in (3, 3, 4))
    assert first[0] == again[0]
    np.testing.assert_array_equal(first[1], again[1])
    assert first[0] != other[0]


@pytest.mark.parametrize("missing", [0.1, 0.5, 2 / 3])
def test_missing_cells_are_counted_and_never_all_of_a_sample(missing):
    X, _ = make_views(90, missing=missing, random_state=0)
    assert X.mask is not None
    assert (~X.mask).sum() == round(missing * 90 * 3)
    assert X.mask.any(axis=1).all()


def test_shapes_names_and_returns():
    bunch = make_views(31, n_classes=3, redundant=1, n_features=[3, 4, 5, 6], return_X_y=False, random_state=0)
    assert bunch.data.names == ("informative0", "informative1", "redundant0", "noise0")
    assert [bunch.data[name].shape for name in bunch.data.names] == [(31, 3), (31, 4), (31, 5), (31, 6)]
    assert sorted(np.bincount(bunch.target)) == [10, 10, 11]
    assert bunch.truth.latent.shape == (31, 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_classes": 1}, r"The 'n_classes' parameter of make_views must be an int in the range \[2, inf\)\. Got 1"),
        ({"informative": 0}, r"The 'informative' parameter of make_views must be an int in the range \[1, inf\)"),
        ({"missing": 0.7}, r"`missing` must lie between 0 and 0\.667.*got 0\.7\."),
        ({"n_features": [3, 4]}, r"`n_features` must be one number or one for each of the 3 views; got shape \(2,\)"),
    ],
)
def test_bad_arguments_of_make_views_raise(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_views(60, **wrong)


def test_sheared_views_need_the_relation_between_views():
    X, y = make_sheared_views(400, random_state=0)
    assert accuracy(X, y, ("view0",)) == accuracy(X, y, ("view1",)) == 1.0
    pooled = np.vstack([X["view0"], X["view1"]])
    angles = np.deg2rad(np.arange(360))
    right = (pooled @ [np.cos(angles), np.sin(angles)] > 0) == np.tile(y, 2)[:, None]
    assert right.mean(axis=0).max() < 0.65
    back = np.linalg.lstsq(X["view1"], X["view0"])[0]
    aligned = np.vstack([X["view0"], X["view1"] @ back])
    assert LogisticRegression().fit(aligned, np.tile(y, 2)).score(aligned, np.tile(y, 2)) == 1.0
    assert np.linalg.matrix_rank(np.hstack([X["view0"], X["view1"]])) == 2
    assert np.linalg.matrix_rank(np.hstack([*map(make_sheared_views(noise=0.1)[0].__getitem__, X.names)])) == 4


# -- from scikit-learn's data
@pytest.mark.parametrize(
    ("load", "widths", "n_samples"),
    [(datasets.load_breast_cancer_views, [10, 10, 10], 569), (datasets.load_digits_views, [64, 46, 32, 25], 1797)],
)
def test_embedded_views(load, widths, n_samples):
    bunch, (X, y) = load(), load(return_X_y=True)
    assert bunch.data == X
    np.testing.assert_array_equal(y, bunch.target)
    assert [X[name].shape[1] for name in X.names] == [len(bunch.feature_names[name]) for name in X.names] == widths
    assert len(X) == len(y) == n_samples
    assert all(accuracy(X, y, (name,)) > 0.75 for name in X.names)


def test_digit_features_by_hand():
    bunch = datasets.load_digits_views()
    image = bunch.data["pixels"][7].reshape(8, 8)

    def value(view, name):
        return bunch.data[view][7, bunch.feature_names[view].index(name)]

    assert value("profiles", "row_2") == image[2].sum()
    assert value("profiles", "column_5") == image[:, 5].sum()
    assert value("profiles", "diagonal_+0") == sum(image[i, i] for i in range(8))
    assert value("profiles", "antidiagonal_+0") == sum(image[i, 7 - i] for i in range(8))
    wave = np.exp(-2j * np.pi * (-1 * np.arange(8)[:, None] + 2 * np.arange(8)) / 8)
    np.testing.assert_allclose(value("fourier", "frequency_-1+2"), abs((image * wave).sum()) / 64)
    np.testing.assert_allclose(bunch.data["gradients"][7].sum(), np.hypot(*np.gradient(image)).sum())


# -- finding, checking, caching
ARRAYS = {"X": np.arange(6.0).reshape(3, 2), "y": np.array([1, 2, 1], dtype=np.int16), "names": np.array(["a", "bc"])}


def parse_small(archive):
    table = _parsers.number_table(_parsers.member(archive, "small.data"), np.float64, ",")
    return {"X": table[:, :2], "y": table[:, 2].astype(np.int16), "names": np.array(["a", "bc"])}


SMALL = _store.ArrayFile(
    "small.npz", _store.array_digest(ARRAYS), "a shelf", ("https://example.org/small.zip",), parse_small
)
SMALL_ZIP = zipped(small__data=b"0,1,1\n2,3,2\n4,5,1\n")


@pytest.fixture
def web(monkeypatch):
    """Replace the network by a dict of addresses and contents."""
    pages = {}

    def content_of(url):
        if url not in pages:
            raise OSError("no route to host")
        return io.BytesIO(pages[url])

    monkeypatch.setattr(_store, "_open", content_of)
    monkeypatch.delenv(_store.FOLDER_VARIABLE, raising=False)
    return pages


def assert_small(arrays):
    assert _store.array_digest(arrays) == SMALL.digest


def test_digest_sees_names_types_shapes_and_values_but_not_order_of_bytes():
    swapped = {name: array.astype(array.dtype.newbyteorder(">")) for name, array in reversed(ARRAYS.items())}
    assert _store.array_digest(swapped) == SMALL.digest
    X = ARRAYS["X"]
    for other in ({"Z": X}, {"X": X.astype(np.float32)}, {"X": X.reshape(2, 3)}, {"X": X + 1}):
        assert _store.array_digest(other) != _store.array_digest({"X": X})


@pytest.mark.parametrize("given", [True, False])
def test_download_parses_checks_and_caches(web, tmp_path, monkeypatch, given):
    web[SMALL.homes[0]] = SMALL_ZIP
    folder = tmp_path / "consilience"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # for users who do not name a folder
    assert_small(_store.read_arrays(SMALL, folder if given else None))
    web.clear()
    assert_small(_store.read_arrays(SMALL, folder if given else None))
    assert [path.name for path in folder.iterdir()] == ["small.npz"]


def test_given_folder_comes_first(web, tmp_path, monkeypatch):
    np.savez(tmp_path / "small.npz", **ARRAYS)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "small.npz").write_bytes(b"never read")
    monkeypatch.setenv(_store.FOLDER_VARIABLE, str(tmp_path))
    assert_small(_store.read_arrays(SMALL, tmp_path / "cache"))


def in_bytes(**arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


CHANGED = ARRAYS | {"y": ARRAYS["y"] + np.int16(1)}
UNREADABLE = ("small.npz is not a readable npz file of plain arrays (", "Remove or replace it")
DIFFERENT = ("has other arrays than expected", SMALL.digest, _store.array_digest(CHANGED), "original data: a shelf")
DAMAGED = {
    "text": (b"not an archive", UNREADABLE),
    "empty": (b"", UNREADABLE),
    "half": (SMALL_ZIP[:40], UNREADABLE),
    "pickled": (in_bytes(X=np.array([{"a": 1}], dtype=object)), (*UNREADABLE, "(Object arrays cannot be loaded")),
    "different": (in_bytes(**CHANGED), DIFFERENT),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_file_is_refused(web, tmp_path, case):
    web[SMALL.homes[0]] = SMALL_ZIP
    content, parts = DAMAGED[case]
    (tmp_path / "small.npz").write_bytes(content)
    with pytest.raises(OSError, match=re.escape(str(tmp_path / "small.npz"))) as caught:
        _store.read_arrays(SMALL, tmp_path)
    for part in parts:
        assert part in str(caught.value)


HOME = SMALL.homes[0]
NOT_FOUND = r"small\.npz was not found in .*the download from .* failed"
PAGES = {
    "none": (None, FileNotFoundError, NOT_FOUND),
    "page": (b"<html>gone</html>", FileNotFoundError, NOT_FOUND),
    "other": (zipped(other__data=b"1"), FileNotFoundError, NOT_FOUND),
    "large": (SMALL_ZIP + bytes(2000), FileNotFoundError, f"{NOT_FOUND}.*larger than the limit of 2000 bytes"),
    "changed": (
        zipped(small__data=b"9,1,1\n2,3,2\n4,5,1\n"), OSError,
        r"small\.zip no longer contain the arrays of small\.npz: digest \w+ instead of",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PAGES)
def test_a_failed_download_names_everything_that_was_tried_and_is_not_cached(web, tmp_path, case, monkeypatch):
    page, error, message = PAGES[case]
    monkeypatch.setattr(_store, "SIZE_LIMIT", 2000)
    if page is not None:
        web[HOME] = page
    with pytest.raises(error, match=message) as caught:
        _store.read_arrays(SMALL, tmp_path)
    parts = ("CONSILIENCE_DATA (not set)", str(tmp_path / "small.npz"), HOME, "put small.npz into")
    assert case == "changed" or all(part in str(caught.value) for part in parts)
    assert not list(tmp_path.iterdir())


def test_a_set_without_home_names_the_original_data_and_the_script(web, tmp_path):
    with pytest.raises(
        FileNotFoundError,
        match=r"These arrays cannot be downloaded.*https://www\.robots\.ox\.ac\.uk.* "
        r"The script benchmarks/data/flower17\.py of the source code makes the file from these data\. To use them, put",
    ):
        datasets.fetch_flower17(data_home=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"Original data: a shelf\. To use them, put small\.npz into a folder"):
        _store.read_arrays(replace(SMALL, homes=(), parse=None), tmp_path)


def test_interrupted_write_leaves_nothing(web, tmp_path, monkeypatch):
    def interrupted(file, **arrays):
        file.write(b"half of it")
        raise KeyboardInterrupt

    web[SMALL.homes[0]] = SMALL_ZIP
    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _store.read_arrays(SMALL, tmp_path)
    assert not list(tmp_path.iterdir())


def test_https_only(tmp_path, monkeypatch):
    monkeypatch.delenv(_store.FOLDER_VARIABLE, raising=False)
    with pytest.raises(FileNotFoundError, match=r"http://example\.org/ is not an https address"):
        _store.read_arrays(replace(SMALL, homes=("http://example.org/",)), tmp_path)
    with pytest.raises(ValueError, match="not an https address"):
        _store._HttpsOnly().redirect_request(None, None, 302, "", {}, "http://example.org/")


def test_a_set_comes_from_its_public_home(data_folder, web, tmp_path):
    """The original file, written again from the arrays, gives the same set by the other way."""
    (source,) = _sets.SARCOS.sources
    with np.load(data_folder / source.file) as z:
        web[source.homes[0]] = ORIGINALS["SARCOS"](z)[0]
    assert datasets.fetch_sarcos(data_home=tmp_path).data["positions"].shape == (4449, 7)


def mat(**arrays):
    file = io.BytesIO()
    scipy.io.savemat(file, arrays)
    return file.getvalue()


ORIGINALS = {
    "MFEAT": lambda z: [
        zipped(
            **{f"mfeat-{view}": lines(z[view], delimiter=" ") for view in ("fou", "fac", "kar", "pix", "zer", "mor")}
        )
    ],
    "NUTRIMOUSE": lambda z: [
        lines(np.vstack([z["gene_names"], z["gene"].astype(str)])),
        lines(np.vstack([z["lipid_names"], z["lipid"].astype(str)])),
        lines(np.array(["diet", *z["diet_names"][z["diet"]]])),
        lines(np.array(["genotype", *z["genotype_names"][z["genotype"]]])),
    ],
    "SARCOS": lambda z: [mat(sarcos_inv_test=np.hstack([z["X"], z["Y"]]).astype(float))],
}


@pytest.mark.parametrize("name", ORIGINALS)
def test_parsers_read_the_original_formats(name, data_folder):
    """The arrays, written in the format of the public home and parsed again, have the digest of the table."""
    (source,) = SETS[name].sources
    with np.load(data_folder / source.file) as z:
        assert _store.array_digest(source.parse(*ORIGINALS[name](z))) == source.digest


def test_every_parser_is_in_the_table_and_every_home_is_https_and_has_one():
    assert {name for name, data_set in SETS.items() if data_set.sources[0].parse} == set(ORIGINALS)
    for source in SOURCES:
        assert bool(source.homes) == (source.parse is not None)
        assert all(url.startswith("https://") for url in source.homes)


def test_every_public_name_is_listed_and_every_fetch_function_is_in_the_table():
    public = {name for name in vars(datasets) if name.startswith(("fetch_", "load_", "make_", "Views"))}
    assert public == set(datasets.__all__)
    names = {name.removeprefix("fetch_") for name in public if name.startswith("fetch_")}
    assert names == {row[0] for row in FETCHED} | {"sarcos"}


# -- the real sets
# name, columns of each view, sizes of the classes (in the order of target_names), sizes of the splits
FETCHED = [
    ("mfeat", {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}, [200] * 10, []),
    ("nutrimouse", {"gene": 120, "lipid": 21}, [8] * 5, []),
    (
        "flower17",
        {"colour": 300, "shape": 600, "texture": 300, "hsv": 400, "siftint": 800, "siftbdy": 600, "hog": 1764},
        [80] * 17,
        [(1020, 340)] * 3,
    ),
    ("uwave", {"x": 315, "y": 315, "z": 315}, [559, 560, 560, 560, 560, 560, 559, 560], [(896, 3582)]),
    ("three_sources", {"bbc": 3560, "guardian": 3631, "reuters": 3068}, [56, 21, 11, 18, 51, 12], []),
    ("webkb", {"links": 1840, "page": 3000}, [230, 821], []),
    (
        "cora",
        {"content": 1433, "cites": 2708, "inbound": 2706, "outbound": 2706},
        [298, 418, 818, 426, 217, 180, 351],
        [],
    ),
    ("eth80", {"colour": 512, "dxdy": 768, "maglap": 768, "hog": 1764}, [410] * 8, []),
    ("spectrometer", {"blue": 44, "red": 49, "header": 8}, None, []),
    ("tcga_brca", {"mrna": 993, "methylation": 1000, "mirna": 503}, [130, 46, 419, 140, 34], [(558, 211)]),
    ("breast_tcga", {"mrna": 200, "mirna": 184, "protein": 142}, [66, 44, 110], [(150, 70)]),
]
SPARSE = {"three_sources", "webkb", "cora"}


@pytest.mark.parametrize(("name", "widths", "sizes", "splits"), FETCHED, ids=[row[0] for row in FETCHED])
def test_fetched_set(name, widths, sizes, splits, data_folder):
    bunch = getattr(datasets, f"fetch_{name}")()
    X, y = bunch.data, bunch.target
    assert {view: X[view].shape[1] for view in X.names} == widths
    assert all(sp.issparse(X[view]) == (name in SPARSE) for view in X.names)
    assert all(X[view].dtype in (np.float32, np.float64) for view in X.names)
    classes, counts = np.unique(y, return_counts=True)
    np.testing.assert_array_equal(classes, bunch.target_names)
    assert sizes is None or counts.tolist() == sizes
    assert [(len(train), len(test)) for train, test in bunch.splits] == splits
    for train, test in bunch.splits:
        assert len(np.union1d(train, test)) == len(train) + len(test) == len(X) == len(y)
    assert all(len(columns) == widths[view] for view, columns in bunch.feature_names.items())
    assert bunch.DESCR.count("\n") > 3


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.file)
def test_digest_of_every_file(source, data_folder):
    with np.load(data_folder / source.file, allow_pickle=False) as z:
        assert _store.array_digest(dict(z)) == source.digest


@pytest.mark.parametrize("name", SETS)
def test_fetch_functions_are_documented_and_found_by_name(name):
    function = getattr(datasets, f"fetch_{name.lower()}")
    doc = function.__doc__
    first, _, rest = doc.partition("\n")
    assert first.startswith("Fetch ")
    assert first.endswith(".")
    for part in ("samples; ", "views ", "Terms: ", "Parameters\n", "Returns\n", "Examples\n", function.__name__):
        assert part in rest
    assert pickle.loads(pickle.dumps(function)) is function


def test_return_X_y(data_folder):
    X, y = datasets.fetch_nutrimouse(target="genotype", return_X_y=True)
    assert isinstance(X, Views)
    assert np.unique(y).tolist() == ["ppar", "wt"]
    with pytest.raises(ValueError, match="`target` must be 'diet' or 'genotype'; got 'weight'"):
        datasets.fetch_nutrimouse(target="weight")


def test_flower17_validation_splits(data_folder):
    bunch = datasets.fetch_flower17()
    for (fit, test), (train, validation) in zip(bunch.splits, bunch.validation_splits, strict=True):
        assert (len(train), len(validation)) == (680, 340)
        assert set(train) | set(validation) == set(fit)
        assert not set(train) & set(validation)
        assert np.unique(bunch.target[test], return_counts=True)[1].tolist() == [20] * 17


def test_eth80_groups_are_whole_objects(data_folder):
    bunch = datasets.fetch_eth80()
    assert LeaveOneGroupOut().get_n_splits(groups=bunch.groups) == 80
    assert np.bincount(bunch.groups).tolist() == [41] * 80
    assert all(len(np.unique(bunch.target[bunch.groups == g])) == 1 for g in range(80))
    assert bunch.images.shape == (3280, 32, 32, 3)


def test_protein_is_missing_at_test_time(data_folder):
    bunch = datasets.fetch_breast_tcga()
    ((train, test),) = bunch.splits
    assert bunch.data.mask is not None
    assert bunch.data[train].mask is None
    np.testing.assert_array_equal(bunch.data.mask[test], [[True, True, False]] * 70)
    assert len(set(bunch.data.sample_names)) == 220


def test_sarcos(data_folder):
    bunch = datasets.fetch_sarcos()
    assert bunch.data.names == ("positions", "velocities", "accelerations")
    assert all(bunch.data[view].shape == (4449, 7) for view in bunch.data.names)
    assert bunch.target.shape == (4449, 7)
    assert len(bunch.target_names) == 7


def test_counts_stay_counts(data_folder):
    words = datasets.fetch_three_sources().data["bbc"].data
    colour = datasets.fetch_flower17().data["colour"]
    for counts in (words, colour):
        np.testing.assert_array_equal(counts, np.round(counts))
        assert counts.max() > 10


def test_rebuilt_descriptors_are_accepted_with_a_warning_and_other_arrays_are_not(tmp_path, monkeypatch):
    known = {"a": np.arange(6.0).reshape(2, 3), "y": np.array([0, 1])}
    source = _store.ArrayFile("set.npz", _store.array_digest(known), "somewhere", form=_store.array_form(known))
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    np.savez(tmp_path / "set.npz", **known)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _store.read_arrays(source, tmp_path)
    np.savez(tmp_path / "set.npz", a=known["a"] + 1, y=known["y"])
    with pytest.warns(UserWarning, match="computed again from the original data"):
        _store.read_arrays(source, tmp_path)
    np.savez(tmp_path / "set.npz", a=known["a"][:1], y=known["y"])
    with pytest.raises(OSError, match="other arrays than expected"):
        _store.read_arrays(source, tmp_path)
