"""Sphinx configuration (`make docs`). Generates the table of policies and the help of the commands at each build."""

from __future__ import annotations

import io
import os
import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import robandit
from robandit.policies import all_policies

DOCS = Path(__file__).parent

project = "Robandit"
author = "The Robandit authors"
project_copyright = "The Robandit authors, MIT licence"
version = release = robandit.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_templates", "reference/api/generated/policies.rst"]
templates_path = ["_templates"]
nitpicky = False  # single backticks in docstrings name parameters as well as functions

# --- pages -----------------------------------------------------------------------------------------------------------

myst_enable_extensions = ["deflist", "dollarmath"]
html_math_renderer = "mathml"  # see `setup`; the default of Sphinx loads a script from elsewhere
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# --- reference -------------------------------------------------------------------------------------------------------

# Objects with a page of their own: those on the pages, and the generated list of policies (see below).
autosummary_generate = [path.relative_to(DOCS).as_posix() for path in DOCS.glob("reference/api/*.md")]
autodoc_typehints = "none"  # keeps signatures short; docstrings describe the parameters
autodoc_member_order = "bysource"
default_role = "py:obj"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Guarantee"]
add_module_names = False
python_maximum_signature_line_length = 88

# --- looks -----------------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "Robandit"
html_static_path = ["_static"]
html_css_files = ["robandit.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "Robandit", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "navbar_align": "left",
    "show_prev_next": True,
    # The landing page and wide tables have no secondary sidebar.
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "policies/table": [], "results/heavy": []},
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "tutorial": []}

# For external links; docs/check.py checks them only if there is a network.
linkcheck_timeout = 10
linkcheck_retries = 2


# --- generated -------------------------------------------------------------------------------------------------------


def help_of(*words: str) -> str:
    """Return the output of `robandit ... --help`, 80 columns wide."""
    from robandit.cli import main

    out = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["robandit", *words, "--help"]),
        mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1", "FORCE_COLOR": "", "TERM": "dumb"}),
        redirect_stdout(out),
        suppress(SystemExit),
    ):
        main()
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip()


def commands(*words: str) -> list[str]:
    """Return the commands that a help text lists: the first word of each line in its panel."""
    panel = re.search(r"─ Commands ─.*?╰", help_of(*words), re.DOTALL)
    return re.findall(r"^│ ([a-z][a-z-]*)  ", panel.group(), re.MULTILINE) if panel else []


def command_line() -> str:
    """Return the help of every command, as the body of a page."""
    lines = ["", "```text", help_of(), "```", ""]
    for name in commands():
        subcommands = commands(name)
        lines += [f"## robandit {name}", "", "```text", help_of(name), "```", ""]
        for child in subcommands:
            lines += [f"### robandit {name} {child}", "", "```text", help_of(name, child), "```", ""]
    return "\n".join(lines)


def policy_list(folder: str) -> str:
    """The classes of all policies, whose pages are in a folder, as reStructuredText."""
    names = sorted({type(policy).__name__ for policy in all_policies()}, key=str.lower)
    lines = [".. currentmodule:: robandit.policies", "", ".. autosummary::", f"   :toctree: {folder}", ""]
    return "\n".join([*lines, *(f"   {name}" for name in names), ""])


# Pages of objects are generated from files, before any page is read: so the list is a file too.
LIST = "reference/api/generated/policies.rst"
(DOCS / LIST).parent.mkdir(exist_ok=True)
(DOCS / LIST).write_text(policy_list("."), encoding="utf-8")
autosummary_generate.append(LIST)


def generate(app: Any, page: str, source: list[str]) -> None:
    """Fill in what the library knows: the table and the list of policies, the help of the commands."""
    if page == "policies/table":
        source[0] = runpy.run_path(str(DOCS / "policies" / "table.py"))["as_markdown"](all_policies())
    elif page == "reference/api/policies":
        source[0] += f"```{{eval-rst}}\n{policy_list('generated')}```\n"
    elif page == "reference/command-line":
        source[0] += command_line()


def escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape bars: docstrings write |X| for absolute values, which reStructuredText reads as a substitution."""
    for i, line in enumerate(lines):
        if "|" in line and not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(``.*?``)", line)
            lines[i] = "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts)


def forget_modules_without_source(app: Any) -> Iterator[Any]:
    """Keep modules such as builtins off the list of sources: they have no page there."""
    known = getattr(app.env, "_viewcode_modules", {})
    for name in [name for name, entry in known.items() if not entry]:
        del known[name]
    return iter(())


def mathml(tex: str, *, block: bool = False) -> str:
    """Convert a formula to MathML, with the spaces of TeX around functions and none around a slash."""
    from docutils.utils.math.latex2mathml import tex2mathml  # the tests read this file without Sphinx

    text = re.sub(r">\s+<", "><", tex2mathml(tex, as_block=block))
    function = r"<mi>\w+</mi><mo>&ApplyFunction;</mo>"
    text = re.sub(rf"(</m(?:i|n|sub|sup|subsup|frac|sqrt)>|\)</mo>)(?={function})", r'\1<mspace width="0.17em"/>', text)
    text = re.sub(rf"({function})(?!<mo)", r'\1<mspace width="0.17em"/>', text)
    return text.replace('<mo stretchy="false">/</mo>', '<mo lspace="0" rspace="0">/</mo>')


def add_math(translator: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers typeset without scripts or fonts from elsewhere."""
    from docutils.nodes import SkipNode, math_block

    translator.body.append(mathml(node.astext(), block=isinstance(node, math_block)))
    raise SkipNode


def setup(app: Any) -> None:
    """Connect the hooks; Sphinx calls this function."""
    app.add_html_math_renderer("mathml", (add_math, None), (add_math, None))
    app.connect("html-collect-pages", forget_modules_without_source, priority=100)
    app.connect("source-read", generate)
    app.connect("autodoc-process-docstring", escape_bars)
