"""Numbers and times as people write them, and text that is safe for a terminal or inside a script."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup


def number(value: float | None) -> str:
    """A measured number, short.

    >>> number(0.00012), number(None), number(3.14159), number(12345.6)
    ('0.00012', '–', '3.14', '12346')
    """
    if value is None:
        return "–"
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence, each once.

    >>> listed(["Theorem 1", "Theorem 1", "Figure 2", "Lemma 3"])
    'Theorem 1, Figure 2 and Lemma 3'
    """
    words = list(dict.fromkeys(words))
    return "".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} and {words[-1]}"


YEAR = 365.25 * 86400


def duration(seconds: float) -> str:
    """A readable duration.

    >>> duration(75), duration(3.21)
    ('1 min 15 s', '3.2 s')
    >>> duration(9000), duration(4e5), duration(9e8)
    ('2 h 30 min', '4.6 days', '29 years')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 2 * 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole / 86400:.1f} days" if whole < 2 * YEAR else f"{whole / YEAR:,.0f} years"


CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """Text from a foreign file, without characters that move the cursor, colour or reorder it.

    >>> plain("holds\\x1b[2J")
    'holds�[2J'
    """
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def as_script(data: Any) -> Markup:
    """Data as JSON that is safe inside a script element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
