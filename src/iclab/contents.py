"""The statements of the built-in papers without importing them: `iclab list` reads contents.json.

    python -m iclab.contents

writes it from the code; a test checks it against the papers.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

FILE = "contents.json"


def contents() -> list[dict[str, Any]]:
    """The built-in papers with their statements, from the file."""
    return list(json.loads((resources.files("iclab.data") / FILE).read_text(encoding="utf-8")))


def collected() -> list[dict[str, Any]]:
    """The same, from the papers themselves."""
    from iclab.library import default_settings
    from iclab.papers import PAPERS

    return [entry(paper, default_settings(paper)) for paper in PAPERS.values()]


def entry(paper: Any, settings: Any) -> dict[str, Any]:
    """A paper and its statements, as `iclab list` needs them."""
    statements = [
        {
            "id": statement.id,
            "source": statement.source,
            "words": statement.words,
            "kinds": list(statement.kinds),
            "readings": [reading.name for reading in statement.readings],
            "beyond": statement.beyond,
        }
        for statement in paper.statements(settings)
    ]
    return {"id": paper.id, "title": paper.title, "statements": statements}


if __name__ == "__main__":
    place = Path(str(resources.files("iclab.data") / FILE))
    place.write_text(json.dumps(collected(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(place)
