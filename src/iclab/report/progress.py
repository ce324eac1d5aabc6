"""The page of a run that is still going: how far it is, and its claims with their verdicts as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iclab.report.page import template


def render_progress(identity: Mapping[str, Any], status: Mapping[str, Any] | None) -> str:
    """The HTML. It follows the run by the events of `iclab serve`, and becomes the finished page when there is one."""
    claims = list(status["claims"]) if status else []
    papers = {name: [claim for claim in claims if claim["paper"] == name] for name in dict.fromkeys(c["paper"] for c in claims)}
    return template("progress.html").render(identity=identity, status=status, papers=papers)
