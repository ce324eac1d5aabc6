"""What chain-of-thought prints, word for word, and what the words of its readings' names are called."""

from __future__ import annotations

facets = {
    "ε=0.1": "ε = 0.1",
    "ε=0.05": "ε = 0.05",
    "ε=0.025": "ε = 0.025",
    "ε=0.0125": "ε = 0.0125",
}
