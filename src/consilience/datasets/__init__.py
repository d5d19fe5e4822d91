"""Multi-view data: seeded generators with known truth, sets from scikit-learn's own data, and the papers' data sets.

A ``fetch_*`` function looks into the folder named by the environment variable ``CONSILIENCE_DATA``, then into the cache
(`data_home`, or ``consilience`` in the user's cache folder), then at the public home where there is one. The arrays are
checked by a digest on every way.
"""

from ._embedded import load_breast_cancer_views, load_digits_views
from ._fetch import (
    fetch_a9a,
    fetch_abalone,
    fetch_breast_tcga,
    fetch_cora,
    fetch_eth80,
    fetch_flower17,
    fetch_glass,
    fetch_mfeat,
    fetch_news20,
    fetch_nutrimouse,
    fetch_optdigits,
    fetch_page_blocks,
    fetch_sarcos,
    fetch_satimage,
    fetch_skin,
    fetch_spectrometer,
    fetch_tcga_brca,
    fetch_three_sources,
    fetch_uwave,
    fetch_w8a,
    fetch_webkb,
    fetch_yeast,
)
from ._make import ViewsTruth, make_sheared_views, make_views

__all__ = [
    "ViewsTruth",
    "make_sheared_views",
    "make_views",
    "load_breast_cancer_views",
    "load_digits_views",
    "fetch_a9a",
    "fetch_abalone",
    "fetch_breast_tcga",
    "fetch_cora",
    "fetch_eth80",
    "fetch_flower17",
    "fetch_glass",
    "fetch_mfeat",
    "fetch_news20",
    "fetch_nutrimouse",
    "fetch_optdigits",
    "fetch_page_blocks",
    "fetch_sarcos",
    "fetch_satimage",
    "fetch_skin",
    "fetch_spectrometer",
    "fetch_tcga_brca",
    "fetch_three_sources",
    "fetch_uwave",
    "fetch_w8a",
    "fetch_webkb",
    "fetch_yeast",
]
