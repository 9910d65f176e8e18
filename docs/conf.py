"""How the site is built: `make docs`, into docs/_build/html. Nothing is fetched from the network."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import shortlist  # noqa: E402  (found by the path above)

project = "Shortlist"
author = "The Shortlist developers"
project_copyright = "The Shortlist developers, MIT licence"
version = release = shortlist.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "tools.site_links",
    "tools.site_names",
]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
smartquotes = False  # `--store` is no dash
nitpicky = True

# Pages are plain Markdown, to be read without the site too: headings have the anchors that GitHub gives.
myst_heading_anchors = 3
myst_links_external_new_tab = False

# In docstrings, words in single backticks are names: links where the name has an entry, and code elsewhere.
default_role = "name"
napoleon_google_docstring = False
napoleon_use_ivar = False
napoleon_use_rtype = False
napoleon_attr_annotations = False
napoleon_custom_sections = ["Guarantee", "Source"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
nitpick_ignore_regex = [
    ("py:class", r"(?!shortlist\.(\w+)$).*"),  # types of NumPy and others, and our own that have no entry
]

autodoc_mock_imports = ["inspect_ai", "lm_eval", "optuna", "sklearn", "joblib"]  # adapters import them

html_theme = "furo"
html_title = "Shortlist"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
