"""Reuse the results of an earlier run, so that its models are not trained again."""

from __future__ import annotations

from pathlib import Path

from iclab.errors import require
from iclab.runs.jobs import CONTROL
from iclab.runs.manifest import read_manifest
from iclab.runs.store import Store, read_result

SAME = {"source": "another version of iclab", "version": "another version of iclab", "numerics": "other numerics"}


def take_over(store: Store, directory: Path) -> int:
    """Copy the results of the run in `directory` that the store's run needs, whatever the seeds; return how many.

    A member's numbers depend only on what it is, so the code, the numerics and each paper's settings must agree.
    """
    manifest = read_manifest(directory)
    before, now = manifest["identity"], store.manifest["identity"]
    require("grid" not in before, f"{directory} is a sweep; --reuse takes a run of `iclab reproduce`.")
    for name, words in SAME.items():
        require(before.get(name) == now[name], f"{directory} was computed with {words}; its results cannot be reused.")
    texts, others = (identity.get("texts", {}) for identity in (now, before))
    papers = {
        paper
        for paper, settings in now["settings"].items()
        if before["settings"].get(paper) == settings and texts.get(paper) == others.get(paper)
    }
    require(bool(papers), f"{directory} has none of these papers with the same settings; nothing can be reused.")
    root, found = directory / "results", 0
    for path in sorted(root.rglob("*.nc")):
        name = path.relative_to(root).with_suffix("").as_posix()
        if name.removeprefix(CONTROL).partition("/")[0] in papers and store.load_result(name) is None:
            data = read_result(path, manifest["fingerprint"])
            store.save_result(name, data, float(data.attrs["seconds"]))
            found += 1
    return found
