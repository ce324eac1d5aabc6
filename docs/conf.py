"""The documentation site: MyST Markdown, the furo theme, mathematics as MathML. It asks no other machine."""

import importlib.metadata
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
# What notebooks compile runs for seconds: compiling it less well saves half of the time.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false")

project = "iclab"
author = "the iclab authors"
version = release = importlib.metadata.version("iclab")
html_title = f"iclab {version}"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#005b8f"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#7cc5ef"},
}

extensions = ["myst_nb", "mathematics", "api_reference", "letters", "offline"]  # myst_nb brings myst_parser
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "force"  # notebooks are executed by every build, in a folder of their own
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
html_math_renderer = "mathml"
exclude_patterns = ["extensions", "_*"]
add_module_names = False
smartquotes = False  # they turn --out into –out
python_maximum_signature_line_length = 100
nitpicky = True
# Types in signatures are not links; what a page refers to by name must exist.
nitpick_ignore_regex = [("py:class", ".*")]
# ref.python: a class in a signature whose name two modules use (Panel, Finding) is linked to neither by mistake.
suppress_warnings = ["config.cache", "ref.python"]
