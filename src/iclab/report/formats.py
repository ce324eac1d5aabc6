"""Numbers and times as people write them."""

from __future__ import annotations


def number(value: float | None) -> str:
    """A measured number, short.

    >>> number(0.00012), number(None), number(3.14159), number(12345.6)
    ('0.00012', '–', '3.14', '12346')
    """
    if value is None:
        return "–"
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> duration(75), duration(3.21)
    ('1 min 15 s', '3.2 s')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"
