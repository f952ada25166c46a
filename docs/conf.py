"""How Sphinx builds the documentation site: `make docs` with the gallery executed, `make docs-check` without."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import dpfda

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]

project = "dpfda"
author = "the dpfda authors"
project_copyright = "the dpfda authors, Apache-2.0"
version = release = dpfda.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "command_pages",
    "markdown_docstrings",
    "repository_pages",
    "stamped_pages",
]
templates_path = ["_templates"]
exclude_patterns = ["_templates", "gallery"]  # the gallery's scripts become pages under examples/
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions
nitpicky = True
nitpick_ignore_regex = [("py:class", r"(?!dpfda\.).*")]  # types in docstrings are words: "(low, high)"
needs_sphinx = "8.2"
smartquotes = False  # --options and code in help texts stay as they are

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4

# Reference, from docstrings. Single backticks are code, as in Markdown; types are those that the docstrings state.
default_role = "literal"
autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": "BaseEstimator, Exception, Warning, tuple"}
autoclass_content = "class"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Guarantee"]

# Looks: everything is served from the site itself
html_theme = "furo"
html_title = f"dpfda {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # summaries are fetched, which a browser refuses for pages opened as files
html_show_sourcelink = False
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {"color-brand-primary": "#1b5e8c", "color-brand-content": "#1b5e8c"},
    "dark_css_variables": {"color-brand-primary": "#7db8e0", "color-brand-content": "#7db8e0"},
}
pygments_style = "friendly"
pygments_dark_style = "native"
copybutton_exclude = ".linenos, .gp, .go"

# Gallery: every docs/gallery/plot_*.py is executed and becomes a page
warnings.filterwarnings("ignore", message="Matplotlib is currently using agg")
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib",),
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r".*\.(toml|csv)",
}
