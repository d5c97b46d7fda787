"""The documentation site; build it with `make docs`. Nothing here needs the network."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx import addnodes
from sphinx.util import logging

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # autodoc imports what uses JAX
sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import align_rudder

logger = logging.getLogger(__name__)

project = "Align-RUDDER"
author = "the align-rudder developers"
copyright = f"{author}, MIT licence"
version = release = align_rudder.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
suppress_warnings = ["config.cache"]  # the environment holds no function but those of this file

# Markdown: the same text reads well on a code host and here.
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

# Docstrings are Google's; in them `x` is code.
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_use_ivar = True
strip_signature_backslash = True  # or else names lose their underscore at the end
python_maximum_signature_line_length = 88
nitpicky = True
nitpick_ignore_regex = [  # other libraries, whose pages are not asked for; names not documented
    ("py:.*", r"(numpy|np|gym|gymnasium|matplotlib|jax|jnp|eqx|equinox|optax|minari|torch)\..*"),
    ("py:.*", r"(stable_baselines3|sklearn|tqdm|collections|typing|os|pathlib)\..*"),
    (
        "py:class",
        r"Array|Axes|Deltas|Figure|GivenEpisode|MinariDataset|Mlp|Namer|Path|Policy|StreamState|tqdm",
    ),
    ("py:class", r"tuple\[int"),
    ("py:class", r"align_rudder\.\w+\..*"),  # types of the parts; those of the package are checked
]

html_theme = "furo"
html_title = f"Align-RUDDER {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}


def mathml(node: nodes.math | nodes.math_block, block: bool) -> str:
    """Return a formula as MathML, which browsers show without any script."""
    try:
        return latex2mathml.tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        logger.warning("formula %r: %s", node.astext(), error, location=node)
        return ""


def inline_math(self: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    self.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def block_math(self: Any, node: nodes.math_block) -> None:
    """Write a formula by itself."""
    self.body.append(f'<div class="math">{mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def folders(app: Any, doctree: nodes.document) -> None:
    """Show a link to a folder of the repository, which is not part of the site, as its path."""
    here = Path(app.srcdir, app.env.docname).parent
    for node in list(doctree.findall(addnodes.pending_xref)):
        target = node["reftarget"]
        if node["reftype"] == "myst" and (here / target).is_dir():
            path = target.removeprefix("../")
            told = nodes.Text("" if node.astext().strip("/") == path else f" ({path}/)")
            node.replace_self(nodes.inline("", "", *node.children, told))


def left_out(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to estimators for its own pipelines."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Any) -> None:
    """Tell Sphinx of the functions above."""
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("doctree-read", folders)
    app.connect("autodoc-skip-member", left_out)
