"""Build the documentation offline: run every gallery example, render formulas here, load no script from elsewhere."""

import re
import sys
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE), str(HERE / "_ext")]

import consilience  # noqa: E402

# An attribute of the package: registered as a module, its pages have the name that users import.
sys.modules["consilience.certificates"] = consilience.certificates

project = "consilience"
author = "The consilience developers"
copyright = author
version = release = consilience.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",  # a link to the source of each public name
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",  # in _ext
]
exclude_patterns = [
    "_build",
    "_ext",
    "_made",
    "gallery/**/*.ipynb",
    "gallery/**/*.py.md5",
]
templates_path = ["_templates"]
default_role = "py:obj"  # `name` in a docstring links to the name where it is documented
add_module_names = False
python_use_unqualified_type_names = True
suppress_warnings = [
    "config.cache"
]  # the gallery's settings hold functions

# -- the pages of the API reference
autosummary_generate = True
autodoc_default_options = {"members": False}
autodoc_typehints = "none"  # the docstrings say more
numpydoc_show_class_members = False  # the class template lists them
numpydoc_use_plots = False
numpydoc_xref_param_type = False

# -- the guide
myst_heading_anchors = 3
myst_enable_extensions = [
    "colon_fence",  # a block that holds blocks of code
    "dollarmath",
]
html_math_renderer = "mathml"
copybutton_selector = "div:not(.highlight-text):not(.highlight-none) > div.highlight > pre"  # code, not its output
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


# -- the gallery
class ByNumber:
    """Examples in the order of the numbers in their names: plot_10 comes after plot_9."""

    def __init__(self, folder):
        pass

    def __call__(self, name):
        return int(str(name).split("_")[1])


sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("consilience",),
    "within_subsection_order": ByNumber,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
    "matplotlib_animations": False,
    "abort_on_example_error": True,
}

# -- the look
html_theme = "pydata_sphinx_theme"
html_title = "consilience"
html_static_path = ["_static"]
html_extra_path = ["_made/extra"]  # the report of `make demo`, to open
html_css_files = ["consilience.css"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {
    "*": [],
    "gallery/*": [],
}  # the guide and the API pages have a sidebar
html_theme_options = {
    "logo": {"text": "consilience"},
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def _unlinked(app, what, name, obj, options, lines):
    """Keep the words and drop the links of docstrings that methods inherit from scikit-learn: they name its pages."""
    lines[:] = [
        re.sub(r":(?:ref|term):`([^<`]+?)(?: <[^>]*>)?`", r"\1", line)
        for line in lines
    ]


def _formulas(app, what, name, obj, options, lines):
    """Show indented blocks of the summary and the notes, which are formulas, as they are written."""
    made, prose, literal = [], True, False
    for line, below in pairwise([*lines, ""]):
        if below.startswith("---"):
            prose = line == "Notes"
        if line and not line.startswith(" "):
            literal = False
        elif line and prose and not literal and made and not made[-1]:
            if not "".join(made[-2:-1]).endswith("::"):
                made += ["::", ""]
            literal = True
        made.append(line)
    lines[:] = made


def setup(app):
    """Make the pictures of the pages and change docstrings as they are read."""
    import pictures

    pictures.make()
    app.connect("autodoc-process-docstring", _formulas, priority=400)
    app.connect("autodoc-process-docstring", _unlinked)
    return {"parallel_read_safe": True}
