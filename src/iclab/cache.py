"""Where things are kept that can be made again: compiled programs, unpacked weights, lists of statements."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory(what: str = "compiled") -> Path:
    """The folder for compiled programs (or `what` else): $ICLAB_CACHE, or iclab/compiled in the user's cache folder."""
    given = os.environ.get("ICLAB_CACHE")
    if given:
        return Path(given) if what == "compiled" else Path(given) / what
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "iclab" / what
