"""Data sets of the papers: one function per set, from a folder of files, the cache or the public home."""

import os
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from ..views.container import Views
from . import _sources as sources
from ._parsers import SATIMAGE_CLASSES
from ._sources import DataFile
from ._store import Arrays, read_arrays

DataHome: TypeAlias = str | os.PathLike[str] | None
Fetched: TypeAlias = Bunch | tuple[Views, np.ndarray]
Split: TypeAlias = tuple[np.ndarray, np.ndarray]


CORA_FIELDS = np.array(
    [
        "Neural_Networks",
        "Rule_Learning",
        "Reinforcement_Learning",
        "Probabilistic_Methods",
        "Theory",
        "Genetic_Algorithms",
        "Case_Based",
    ]
)
SATIMAGE_NAMES = np.array(SATIMAGE_CLASSES)


def fetch_mfeat(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch Multiple Features: handwritten digits in six views (UCI).

    2000 digits, ordered by class; views ``fou``, ``fac``, ``kar``, ``pix``, ``zer``, ``mor``. Target: the digit.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR`; no official split.

    Examples
    --------
    >>> from consilience.datasets import fetch_mfeat
    >>> fetch_mfeat().data  # doctest: +SKIP
    Views of 2000 samples
      fou  dense float64  76 columns
      fac  dense float64  216 columns
      kar  dense float64  64 columns
      pix  dense float64  240 columns
      zer  dense float64  47 columns
      mor  dense float64  6 columns
    """
    z = _read(sources.MFEAT, data_home)
    X = _dense(z, "fou", "fac", "kar", "pix", "zer", "mor")
    return _answer(sources.MFEAT, X, _labels(z["y"]), return_X_y)


def fetch_nutrimouse(*, target: str = "diet", data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch Nutrimouse: genes and lipids of 40 mice.

    Views ``gene`` (120) and ``lipid`` (21). Target: the diet or the genotype, by name.

    Parameters
    ----------
    target : {"diet", "genotype"}, default="diet"
        What to predict: one of five diets, or one of two genotypes.
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR`; no official split.

    Examples
    --------
    >>> from consilience.datasets import fetch_nutrimouse
    >>> fetch_nutrimouse().data  # doctest: +SKIP
    Views of 40 samples
      gene   dense float64  120 columns
      lipid  dense float64  21 columns
    """
    if target not in ("diet", "genotype"):
        raise ValueError(f"`target` must be 'diet' or 'genotype'; got {target!r}. Choose one of the two.")
    z = _read(sources.NUTRIMOUSE, data_home)
    y = z[f"{target}_names"][z[target]]
    names = _columns(gene=z["gene_names"], lipid=z["lipid_names"])
    return _answer(sources.NUTRIMOUSE, _dense(z, "gene", "lipid"), y, return_X_y, feature_names=names)


def fetch_flower17(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch Flower-17 in seven descriptors of our own.

    1360 images of 17 species. Not the published distance matrices, nor the official splits: see `DESCR`. Views
    ``colour``, ``shape``, ``texture``, ``hsv``, ``siftint``, ``siftbdy`` (counts of visual words) and ``hog``. Target:
    the species, by name.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits` (training and validation against test, three times),
        `validation_splits` (training against validation), `feature_names` and `DESCR`.

    Examples
    --------
    >>> from consilience.datasets import fetch_flower17
    >>> fetch_flower17().data  # doctest: +SKIP
    Views of 1360 samples
      colour   dense float64  300 columns
      shape    dense float64  600 columns
      texture  dense float64  300 columns
      hsv      dense float64  400 columns
      siftint  dense float64  800 columns
      siftbdy  dense float64  600 columns
      hog      dense float32  1764 columns
    """
    z = _read(sources.FLOWER17, data_home)
    X = _dense(z, "colour", "shape", "texture", "hsv", "siftint", "siftbdy", "hog")
    parts = [[z[f"own_{part}{k}"].astype(np.intp) for part in ("trn", "val", "tst")] for k in (1, 2, 3)]
    splits = [(np.concatenate([train, validation]), test) for train, validation, test in parts]
    inner = [(train, validation) for train, validation, _ in parts]
    y = z["class_names"][z["y"]]
    return _answer(sources.FLOWER17, X, y, return_X_y, splits=splits, validation_splits=inner)


def fetch_uwave(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch uWave gestures: three axes of an accelerometer (UCR archive).

    4478 series of 315 points; views ``x``, ``y``, ``z``. Target: the gesture, 1 to 8. The test part is rebuilt from the
    raw library: see `DESCR`.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits` (the official one), `user`, `day`, `repetition`, `feature_names` and
        `DESCR`.

    Examples
    --------
    >>> from consilience.datasets import fetch_uwave
    >>> fetch_uwave().data  # doctest: +SKIP
    Views of 4478 samples
      x  dense float32  315 columns
      y  dense float32  315 columns
      z  dense float32  315 columns
    """
    parts = [_read(data_file, data_home) for data_file in (sources.UWAVE_TRAIN, sources.UWAVE_TEST)]
    z = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    y = _labels(z["labels"]) + 1
    more = {name: _labels(z[name]) for name in ("user", "day", "repetition")}
    splits = _split_after(len(parts[0]["labels"]), len(y))
    return _answer(sources.UWAVE_TRAIN, Views(x=z["X"], y=z["Y"], z=z["Z"]), y, return_X_y, splits=splits, **more)


def fetch_sarcos(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch SARCOS inverse dynamics, the official test part: seven torques of a robot arm.

    4449 states; views ``positions``, ``velocities``, ``accelerations``, seven joints each. Target: seven torques.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target` (n x 7), `target_names`, `splits` (none), `feature_names` and `DESCR`.

    Examples
    --------
    >>> from consilience.datasets import fetch_sarcos
    >>> fetch_sarcos().data  # doctest: +SKIP
    Views of 4449 samples
      positions      dense float32  7 columns
      velocities     dense float32  7 columns
      accelerations  dense float32  7 columns
    """
    z = _read(sources.SARCOS, data_home)
    X = Views(positions=z["X"][:, :7], velocities=z["X"][:, 7:14], accelerations=z["X"][:, 14:])
    torques = np.array([f"torque{joint}" for joint in range(1, 8)])
    return _answer(sources.SARCOS, X, z["Y"], return_X_y, target_names=torques)


def fetch_three_sources(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch 3-Sources: news stories told by three publishers.

    169 stories; sparse views ``bbc``, ``guardian``, ``reuters`` of term counts. Target: the topic, by name.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR`; no official split.

    Examples
    --------
    >>> from consilience.datasets import fetch_three_sources
    >>> fetch_three_sources().data  # doctest: +SKIP
    Views of 169 samples
      bbc       sparse float64  3560 columns
      guardian  sparse float64  3631 columns
      reuters   sparse float64  3068 columns
    """
    z = _read(sources.THREE_SOURCES, data_home)
    X = Views({name: _sparse(z[name]) for name in ("bbc", "guardian", "reuters")})
    return _answer(sources.THREE_SOURCES, X, z["class_names"][z["y"]], return_X_y)


def fetch_webkb(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch WebKB course pages: the words of a page and of the links to it.

    1051 pages; sparse views ``links`` and ``page`` with rows of unit length. Target: ``course`` or ``non-course``.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR`; no official split.

    Examples
    --------
    >>> from consilience.datasets import fetch_webkb
    >>> fetch_webkb().data  # doctest: +SKIP
    Views of 1051 samples
      links  sparse float32  1840 columns
      page   sparse float32  3000 columns
    """
    z = _read(sources.WEBKB, data_home)
    X = Views(links=_sparse(z["view1"]), page=_sparse(z["view2"]))
    return _answer(sources.WEBKB, X, np.array(["course", "non-course"])[z["y"]], return_X_y)


def fetch_cora(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch Cora: papers by their words and their citations.

    2708 papers; sparse views ``content``, ``cites``, ``inbound``, ``outbound``. Target: one of seven fields, by name.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR`; no official split.

    Examples
    --------
    >>> from consilience.datasets import fetch_cora
    >>> fetch_cora().data  # doctest: +SKIP
    Views of 2708 samples
      content   sparse float64  1433 columns
      cites     sparse float64  2708 columns
      inbound   sparse float64  2706 columns
      outbound  sparse float64  2706 columns
    """
    z = _read(sources.CORA, data_home)
    X = Views({name: _sparse(z[name]) for name in ("content", "cites", "inbound", "outbound")})
    return _answer(sources.CORA, X, CORA_FIELDS[z["y"]], return_X_y)


def fetch_eth80(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch ETH-80: images of 80 objects in four descriptors of our own.

    3280 images, 41 of each object; views ``colour``, ``dxdy``, ``maglap`` (counts) and ``hog``. Target: one of eight
    categories, by name.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits` (none), `groups` (the object, 0 to 79: leave whole objects out),
        `images` (32 x 32 RGB), `masks` (64 x 64), `feature_names` and `DESCR`.

    Examples
    --------
    >>> from consilience.datasets import fetch_eth80
    >>> fetch_eth80().data  # doctest: +SKIP
    Views of 3280 samples
      colour  dense float64  512 columns
      dxdy    dense float64  768 columns
      maglap  dense float64  768 columns
      hog     dense float32  1764 columns
    """
    z = _read(sources.ETH80, data_home)
    X = _dense(z, "colour", "dxdy", "maglap", "hog")
    more = {"groups": 10 * _labels(z["y"]) + z["object_id"], "images": z["images"], "masks": z["masks"]}
    return _answer(sources.ETH80, X, z["class_names"][z["y"]], return_X_y, **more)


def fetch_abalone(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch Abalone: the rings of a shell from its measures and sex (UCI).

    4177 shells; views ``measures`` (7) and ``sex`` (0/1 columns for F, I, M). Target: the number of rings, a number
    or a class.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR` (the documentation's split).

    Examples
    --------
    >>> from consilience.datasets import fetch_abalone
    >>> fetch_abalone().data  # doctest: +SKIP
    Views of 4177 samples
      measures  dense float64  7 columns
      sex       dense float64  3 columns
    """
    z = _read(sources.ABALONE, data_home)
    sexes = np.array(["F", "I", "M"])
    X = Views(measures=z["X_num"], sex=z["sex"][:, None] == sexes)
    names = _columns(measures=z["feature_names"], sex=sexes)
    return _answer(sources.ABALONE, X, _labels(z["y"]), return_X_y, splits=_split(z), feature_names=names)


def fetch_glass(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch Glass identification (UCI).

    214 splinters; one view, ``table`` (9). Target: one of six kinds of glass, by name.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR`; no official split.

    Examples
    --------
    >>> from consilience.datasets import fetch_glass
    >>> fetch_glass().data  # doctest: +SKIP
    Views of 214 samples
      table  dense float64  9 columns
    """
    return _one_table(sources.GLASS, data_home, return_X_y)


def fetch_optdigits(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch Optical recognition of handwritten digits (UCI).

    5620 digits; one view, ``pixels`` (64). Target: the digit.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR` (the official split).

    Examples
    --------
    >>> from consilience.datasets import fetch_optdigits
    >>> fetch_optdigits().data  # doctest: +SKIP
    Views of 5620 samples
      pixels  dense float64  64 columns
    """
    X, y, splits = _two_parts(sources.OPTDIGITS, data_home)
    return _answer(sources.OPTDIGITS, Views(pixels=X), y, return_X_y, splits=splits)


def fetch_page_blocks(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch Page blocks (UCI).

    5473 blocks of documents; one view, ``table`` (10). Target: one of five kinds of block, by name.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR`; no official split.

    Examples
    --------
    >>> from consilience.datasets import fetch_page_blocks
    >>> fetch_page_blocks().data  # doctest: +SKIP
    Views of 5473 samples
      table  dense float64  10 columns
    """
    return _one_table(sources.PAGE_BLOCKS, data_home, return_X_y)


def fetch_satimage(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch Statlog Landsat satellite (UCI).

    6435 neighbourhoods of pixels; one view, ``bands`` (36). Target: one of six kinds of ground, by name.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR` (the official split).

    Examples
    --------
    >>> from consilience.datasets import fetch_satimage
    >>> fetch_satimage().data  # doctest: +SKIP
    Views of 6435 samples
      bands  dense float64  36 columns
    """
    X, codes, splits = _two_parts(sources.SATIMAGE, data_home)
    return _answer(sources.SATIMAGE, Views(bands=X), SATIMAGE_NAMES[codes - 1], return_X_y, splits=splits)


def fetch_spectrometer(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch IRAS low resolution spectra (UCI).

    531 spectra; views ``blue`` (44), ``red`` (49) and ``header`` (8). Target: the LRS class, whose tens digit is the
    basic class.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR`; no official split.

    Examples
    --------
    >>> from consilience.datasets import fetch_spectrometer
    >>> fetch_spectrometer().data  # doctest: +SKIP
    Views of 531 samples
      blue    dense float64  44 columns
      red     dense float64  49 columns
      header  dense float64  8 columns
    """
    z = _read(sources.SPECTROMETER, data_home)
    columns = {view: z[f"{view}_cols"] for view in ("blue", "red", "header")}
    X = Views({view: z["X"][:, chosen] for view, chosen in columns.items()})
    names = _columns(**{view: z["feature_names"][chosen] for view, chosen in columns.items()})
    return _answer(sources.SPECTROMETER, X, _labels(z["y"]), return_X_y, feature_names=names)


def fetch_yeast(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch Yeast: the place of a protein in the cell (UCI).

    1484 proteins; one view, ``table`` (8). Target: one of ten places, by its three letters.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits` (none), `groups` (the sequence; some occur twice), `feature_names`
        and `DESCR`.

    Examples
    --------
    >>> from consilience.datasets import fetch_yeast
    >>> fetch_yeast().data  # doctest: +SKIP
    Views of 1484 samples
      table  dense float64  8 columns
    """
    z = _read(sources.YEAST, data_home)
    names = _columns(table=z["feature_names"])
    groups = z["sequence_name"]
    return _answer(sources.YEAST, Views(table=z["X"]), z["y"], return_X_y, groups=groups, feature_names=names)


def fetch_skin(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch Skin segmentation (UCI).

    245,057 pixels, ordered by class; one view, ``colour`` (3). Target: ``skin`` or ``non-skin``.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR`; no official split.

    Examples
    --------
    >>> from consilience.datasets import fetch_skin
    >>> fetch_skin().data  # doctest: +SKIP
    Views of 245057 samples
      colour  dense float64  3 columns
    """
    z = _read(sources.SKIN, data_home)
    y = np.array(["skin", "non-skin"])[z["y"] - 1]
    names = _columns(colour=z["feature_names"])
    return _answer(sources.SKIN, Views(colour=z["X"]), y, return_X_y, feature_names=names)


def fetch_a9a(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch a9a: census income in binary columns (LIBSVM).

    48,842 adults; one sparse view, ``census`` (123). Target: -1 or +1.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR` (the official split).

    Examples
    --------
    >>> from consilience.datasets import fetch_a9a
    >>> fetch_a9a().data  # doctest: +SKIP
    Views of 48842 samples
      census  sparse float64  123 columns
    """
    z = _read(sources.A9A, data_home)
    X = sp.vstack([_csr(z, "X_train"), _csr(z, "X_test")], format="csr")
    y = _labels(np.concatenate([z["y_train"], z["y_test"]]))
    return _answer(sources.A9A, Views(census=X), y, return_X_y, splits=_split_after(len(z["y_train"]), len(y)))


def fetch_w8a(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch w8a, the training part: web pages by binary keywords (LIBSVM).

    49,749 pages, the positive ones close together; one sparse view, ``keywords`` (300). Target: -1 or +1.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits`, `feature_names` and `DESCR`; no split.

    Examples
    --------
    >>> from consilience.datasets import fetch_w8a
    >>> fetch_w8a().data  # doctest: +SKIP
    Views of 49749 samples
      keywords  sparse float64  300 columns
    """
    z = _read(sources.W8A, data_home)
    return _answer(sources.W8A, Views(keywords=_csr(z, "X_train")), _labels(z["y_train"]), return_X_y)


def fetch_news20(*, pairs: bool = False, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch 20 Newsgroups by date, as counts of words or presence of words and word pairs.

    18,846 posts; one sparse view, ``words`` (173,762) or ``pairs`` (1,664,476). Target: one of 20 groups, by name.

    Parameters
    ----------
    pairs : bool, default=False
        Take the presence of words and word pairs in place of the counts of words.
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits` (the official one), `binary_target` (our grouping into -1 and +1),
        `feature_names` (of ``words`` only) and `DESCR`.

    Examples
    --------
    >>> from consilience.datasets import fetch_news20
    >>> fetch_news20().data  # doctest: +SKIP
    Views of 18846 samples
      words  sparse float64  173762 columns
    """
    data_file = sources.NEWS20_PAIRS if pairs else sources.NEWS20_COUNTS
    z = _read(data_file, data_home)
    X = Views({"pairs" if pairs else "words": _csr(z, "X")})
    vocabulary = {} if pairs else {"words": z["vocabulary_utf8"].tobytes().decode().split("\n")}
    more = {"splits": _split(z), "binary_target": _labels(z["y_binary"]), "feature_names": vocabulary}
    return _answer(data_file, X, z["target_names"][z["y"]], return_X_y, **more)


def fetch_tcga_brca(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch TCGA breast cancer: five PAM50 subtypes, three omics.

    769 patients; views ``mrna`` (993), ``methylation`` (1000), ``mirna`` (503), unscaled. Target: the subtype, by name.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits` (one), `sample_id`, `feature_names` and `DESCR`.

    Examples
    --------
    >>> from consilience.datasets import fetch_tcga_brca
    >>> fetch_tcga_brca().data  # doctest: +SKIP
    Views of 769 samples
      mrna         dense float32  993 columns
      methylation  dense float32  1000 columns
      mirna        dense float32  503 columns
    """
    z = _read(sources.TCGA_BRCA, data_home)
    views = ("mrna", "methylation", "mirna")
    names = _columns(**{view: z[f"{view}_features"] for view in views})
    more = {"splits": _split(z), "sample_id": z["sample_id"], "feature_names": names}
    return _answer(sources.TCGA_BRCA, _dense(z, *views), z["class_names"][z["y"]], return_X_y, **more)


def fetch_breast_tcga(*, data_home: DataHome = None, return_X_y: bool = False) -> Fetched:
    """Fetch breast.TCGA of mixOmics: a view missing at test time.

    220 patients; views ``mrna`` (200), ``mirna`` (184) and ``protein`` (142), the last absent in the 70 test patients.
    Target: ``Basal``, ``Her2`` or ``LumA``.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder; by default ``consilience`` in the user's cache folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    Bunch or tuple
        `data`, `target`, `target_names`, `splits` (the official one), `sample_id`, `feature_names` and `DESCR`.

    Examples
    --------
    >>> from consilience.datasets import fetch_breast_tcga
    >>> fetch_breast_tcga().data  # doctest: +SKIP
    Views of 220 samples
      mrna     dense float64  200 columns
      mirna    dense float64  184 columns
      protein  dense float64  142 columns  present in 150
    """
    z = _read(sources.BREAST_TCGA, data_home)
    views = ("mrna", "mirna", "protein")
    train = Views({view: z[f"{view}_train"] for view in views})
    test = Views({view: z[f"{view}_test"] for view in views[:2]})
    y = np.concatenate([z["y_train"], z["y_test"]])
    names = _columns(**{view: z[f"{view}_features"] for view in views})
    more = {"splits": _split_after(len(train), len(y)), "feature_names": names}
    more["sample_id"] = np.concatenate([z["sample_id_train"], z["sample_id_test"]])
    return _answer(sources.BREAST_TCGA, Views.concat([train, test]), y, return_X_y, **more)


def _read(data_file: DataFile, data_home: DataHome) -> Arrays:
    return read_arrays(data_file.source, data_home)


def _answer(data_file: DataFile, X: Views, y: np.ndarray, return_X_y: bool, **fields: Any) -> Fetched:
    """Return (X, y), or the Bunch that every set gives; class names default to the distinct labels."""
    if return_X_y:
        return X, y
    fields = {"target_names": np.unique(y), "splits": [], "feature_names": {}} | fields
    return Bunch(data=X, target=y, DESCR=data_file.about, **fields)


def _dense(z: Arrays, *names: str) -> Views:
    return Views({name: _real(z[name]) for name in names})


def _real(array: np.ndarray) -> np.ndarray:
    """Half precision, which few routines take, becomes single; everything else is for Views to read."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _sparse(dense: np.ndarray) -> sp.csr_matrix:
    return sp.csr_matrix(dense if dense.dtype == np.float32 else dense.astype(np.float64))


def _csr(z: Arrays, name: str) -> sp.csr_matrix:
    """The CSR matrix stored in pieces; without values, all of them are one."""
    indices = z[f"{name}_indices"].astype(np.int32)
    values = z[f"{name}_data"].astype(np.float64) if f"{name}_data" in z else np.ones(len(indices))
    return sp.csr_matrix((values, indices, z[f"{name}_indptr"]), shape=tuple(z[f"{name}_shape"]))


def _labels(codes: np.ndarray) -> np.ndarray:
    """Small and unsigned integers overflow in arithmetic; labels are plain int64."""
    return codes.astype(np.int64)


def _named(z: Arrays) -> np.ndarray:
    """The names of classes that are coded 1, 2, ..."""
    return z["class_names"][z["y"] - 1]


def _columns(**names: np.ndarray) -> dict[str, list[str]]:
    return {view: columns.tolist() for view, columns in names.items()}


def _split(z: Arrays) -> list[Split]:
    return [(z["train_idx"].astype(np.intp), z["test_idx"].astype(np.intp))]


def _split_after(n_train: int, n_samples: int) -> list[Split]:
    return [(np.arange(n_train), np.arange(n_train, n_samples))]


def _one_table(data_file: DataFile, data_home: DataHome, return_X_y: bool) -> Fetched:
    """One view of numbers whose classes are coded from 1 and named."""
    z = _read(data_file, data_home)
    names = _columns(table=z["feature_names"])
    return _answer(data_file, Views(table=z["X"]), _named(z), return_X_y, feature_names=names)


def _two_parts(data_file: DataFile, data_home: DataHome) -> tuple[np.ndarray, np.ndarray, list[Split]]:
    """The official parts of one dense table, joined, with the split that divides them again."""
    z = _read(data_file, data_home)
    X = np.vstack([z["X_train"], z["X_test"]])
    return X, _labels(np.concatenate([z["y_train"], z["y_test"]])), _split_after(len(z["y_train"]), len(X))
