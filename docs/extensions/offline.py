"""The site asks no other machine for anything: a page that would load something from elsewhere fails the build."""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# What a browser loads by itself; a link that a reader may follow is none of these.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b(?![^>]*rel=["']?(?:canonical|license|author))[^>]*\shref=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|@import\s+(?:url\()?["']?(?:https?:)?//[^"')\s]+|url\(["']?(?:https?:)?//[^"')\s]+""",
    re.IGNORECASE,
)


def look(app: Sphinx, error: Exception | None) -> None:
    """Search every page and style sheet of the built site."""
    if error is not None or app.builder.format != "html":
        return
    for path in sorted(Path(app.outdir).rglob("*")):
        if path.suffix in (".html", ".css") and (found := LOADED.search(path.read_text(encoding="utf-8"))):
            raise ExtensionError(f"{path.relative_to(app.outdir)} loads something from elsewhere: {found[0]}")


def setup(app: Sphinx) -> dict:
    """Called by Sphinx."""
    app.connect("build-finished", look)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
