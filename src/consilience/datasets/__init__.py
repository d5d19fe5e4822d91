"""Multi-view data: generators with known truth, views of scikit-learn's own data, and the papers' data sets.

A ``fetch_*`` function first looks into the folder that the environment variable ``CONSILIENCE_DATA`` names. Then it
looks into the cache (`data_home`, or ``consilience`` in the user's cache folder), and at the public home of the set, if
there is one. It always checks a digest of the arrays.
"""

from . import _sets
from ._embedded import load_breast_cancer_views, load_digits_views
from ._fetch import fetcher_of
from ._make import ViewsTruth, make_regression_views, make_sheared_views, make_views

__all__ = [
    "ViewsTruth", "make_regression_views", "make_sheared_views", "make_views",
    "load_breast_cancer_views", "load_digits_views",
    "fetch_breast_tcga", "fetch_cora", "fetch_eth80", "fetch_flower17", "fetch_mfeat", "fetch_nutrimouse",
    "fetch_sarcos", "fetch_spectrometer", "fetch_tcga_brca", "fetch_three_sources", "fetch_uwave", "fetch_webkb",
]  # fmt: skip

fetch_breast_tcga = fetcher_of("fetch_breast_tcga", _sets.BREAST_TCGA)
fetch_cora = fetcher_of("fetch_cora", _sets.CORA)
fetch_eth80 = fetcher_of("fetch_eth80", _sets.ETH80)
fetch_flower17 = fetcher_of("fetch_flower17", _sets.FLOWER17)
fetch_mfeat = fetcher_of("fetch_mfeat", _sets.MFEAT)
fetch_nutrimouse = fetcher_of("fetch_nutrimouse", _sets.NUTRIMOUSE)
fetch_sarcos = fetcher_of("fetch_sarcos", _sets.SARCOS)
fetch_spectrometer = fetcher_of("fetch_spectrometer", _sets.SPECTROMETER)
fetch_tcga_brca = fetcher_of("fetch_tcga_brca", _sets.TCGA_BRCA)
fetch_three_sources = fetcher_of("fetch_three_sources", _sets.THREE_SOURCES)
fetch_uwave = fetcher_of("fetch_uwave", _sets.UWAVE)
fetch_webkb = fetcher_of("fetch_webkb", _sets.WEBKB)
