"""What vector-arithmetic prints, word for word, and what the words of its readings' names are called."""

from __future__ import annotations

facets = {
    "inside": "settings that meet Condition 3.1",
    "t=best": "the best t of each training",
    "t=last": "the last t",
    "t=common": "one t for all trainings",
    "η=0.05": "η = 0.05",
    "q_V=0.4": "step sizes that train (q_V = 0.4)",
    "q_V=1e-5": "the printed step sizes",
    "printed-sizes": "the printed sizes",
}
