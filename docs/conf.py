"""How the documentation is built: offline, with every gallery example run, and without scripts from elsewhere."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]

import consilience  # noqa: E402

project = "consilience"
author = "The consilience developers"
copyright = author
version = release = consilience.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_made", "gallery/**/*.ipynb", "gallery/**/*.py.md5"]
templates_path = ["_templates"]
default_role = "py:obj"  # `name` in a docstring links to the name where it is documented
add_module_names = False
python_use_unqualified_type_names = True
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions

# -- the pages of the public names
autosummary_generate = True
autodoc_default_options = {"members": False}
autodoc_typehints = "none"  # the docstrings say more
numpydoc_show_class_members = False  # the class template lists them
numpydoc_use_plots = False
numpydoc_xref_param_type = False

# -- the guide
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]  # a block that holds blocks of code


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
html_sidebars = {name: [] for name in ("index", "tutorial", "migration", "faq", "glossary", "papers", "architecture")}
html_theme_options = {
    "logo": {"text": "consilience"},
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 4,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


# -- formulas are Unicode text: nothing is fetched to show them
html_math_renderer = "text"


def _inline(self, node):
    self.body.append(f"<em>{self.encode(node.astext())}</em>")
    raise _skip()


def _display(self, node):
    self.body.append(f"<pre>{self.encode(node.astext())}</pre>")
    raise _skip()


def _skip():
    from docutils import nodes

    return nodes.SkipNode()


def _unlinked(app, what, name, obj, options, lines):
    """Methods inherited from scikit-learn refer to pages of its own documentation: keep their words, not the links."""
    lines[:] = [re.sub(r":(?:ref|term):`([^<`]+?)(?: <[^>]*>)?`", r"\1", line) for line in lines]


def setup(app):
    """Register the renderer of formulas as text, and what is done to docstrings; make the pictures of the pages."""
    import pictures

    pictures.make()
    app.connect("autodoc-process-docstring", _unlinked)
    app.add_html_math_renderer("text", inline_renderers=(_inline, None), block_renderers=(_display, None))
    return {"parallel_read_safe": True}
