"""How Sphinx builds the site: ``make docs``, or ``python -m sphinx -W docs build/site``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sphinx.application import Sphinx

from thresher import __version__

HERE = Path(__file__).parent
PICTURES = HERE.parent / "build" / "pictures"
"""where docs/gallery.py draws, for docs/gallery.md"""

project = "thresher"
author = "The thresher developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
suppress_warnings = ["misc.highlighting_failure"]  # of console sessions with quotes that span lines
exclude_patterns = ["_templates", "notebooks/index.rst"]
sphinx_gallery_conf = {
    "examples_dirs": "../examples/notebooks",
    "gallery_dirs": "notebooks",
    "capture_repr": ("_repr_html_", "__repr__"),
    "filename_pattern": r"\.py$",
    "image_scrapers": (),  # pictures are SVG, shown by what draws them
    "reset_modules": (),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,  # or the pages would differ from build to build
}
templates_path = ["_templates"]

myst_enable_extensions = ["attrs_inline", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
default_role = "code"  # docstrings put code between single backticks

html_theme = "pydata_sphinx_theme"
html_title = f"thresher {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["verdicts.js"]
html_show_sourcelink = False
html_context = {
    "default_mode": "auto",  # light or dark, as the reader's system is
    "versions": os.environ.get("DOCS_VERSIONS", "").split(),  # set by docs/versions.py, which builds several
}
html_sidebars = {"**": ["whole-path"]}
html_theme_options = {
    "logo": {"text": "thresher"},
    "navbar_center": [],
    "navbar_persistent": ["search-button-field"],
    "navbar_end": ["versions", "theme-switcher"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

copybutton_prompt_text = r"\$ |>>> |\.\.\. |> "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True


def skip(app: Sphinx, what: str, name: str, thing: object, skipped: bool, options: object) -> bool | None:
    """Leave out scikit-learn's own methods, whose docstrings refer to pages of its site."""
    inherited = str(getattr(thing, "__module__", "")).startswith("sklearn.")
    return True if inherited or name.endswith("_request") else None


def draw_gallery(app: Sphinx) -> None:
    """Draw the pictures in a process of its own, where nothing is compiled."""
    subprocess.run([sys.executable, str(HERE / "gallery.py"), str(PICTURES)], check=True)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", draw_gallery)
    app.connect("autodoc-skip-member", skip)
