"""A figure's SVG inside HTML: its colours follow the theme, and parts that only cost loading time are removed."""

from __future__ import annotations

import re

from iclab.drawing import COLOURS

# The names of the figures' colours on the page; a dark theme gives them other values.
INKS = {"#000000": "ink", "#ffffff": "paper", "#dddddd": "grid", "#333333": "soft", "#bbbbbb": "faint"} | {
    colour.lower(): f"series-{number}" for number, colour in enumerate(COLOURS, 1)
}


def themed(svg: str, prefix: str) -> str:
    """An SVG to put inside HTML.

    Ids that something refers to get names of this figure, the others go; coordinates lose digits that no screen shows;
    the font is named once; style rules that would affect the rest of the page become attributes.
    """
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    points = float((re.search(r'width="([\d.]+)pt"', body) or ["", "600"])[1])
    size = f"min-width: {0.85 * points:.0f}px; max-width: {1.75 * points:.0f}px"  # readable, but not enlarged
    body = body.replace(
        "<svg ", f'<svg stroke-linejoin="round" font-family="DejaVu Sans, Verdana, sans-serif" style="{size}" ', 1
    )
    used = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", body))
    body = re.sub(r'\s+id="([^"]+)"', lambda found: f' id="{prefix}-{found[1]}"' if found[1] in used else "", body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", body)
    body = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', body)
    body = re.sub(r"font-family: [^;\"]*'[^;\"]*;? ?", "", body)
    body = re.sub(r'\b(d|x|y|transform)="([^"]*)"', lambda found: f'{found[1]}="{_rounded(found[2])}"', body)
    body = re.sub(r' transform="rotate\(-?0 [^"]*"', "", body)
    body = re.sub(r">\s+<", "><", body)
    for _ in range(3):  # groups without a purpose
        body = re.sub(r"<g>((?:(?!</?g[ >]).)*)</g>", r"\1", body)
    return re.sub(r"#[0-9a-fA-F]{6}\b", _ink, body)


def _ink(found: re.Match[str]) -> str:
    name = INKS.get(found[0].lower())
    return f"var(--figure-{name}, {found[0]})" if name else found[0]


def _rounded(coordinates: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"(\d+\.\d\d)\d+", r"\1", coordinates)).strip()
