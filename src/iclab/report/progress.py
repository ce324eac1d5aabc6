"""The page of a run in progress: how far it is, and its statements with their answers as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iclab.report.page import rendered


def render_progress(identity: Mapping[str, Any], status: Mapping[str, Any] | None) -> str:
    """The HTML. It follows the run through the events of `iclab serve` and turns into the finished page."""
    statements = list(status["statements"]) if status else []
    names = dict.fromkeys(entry["paper"] for entry in statements)
    papers = {name: [entry for entry in statements if entry["paper"] == name] for name in names}
    return rendered("progress.html", identity=identity, status=status, papers=papers)
