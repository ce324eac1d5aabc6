"""Mathematics on the page, as MathML: every browser renders it without a script or a foreign font."""

from __future__ import annotations

import functools
import html
import re

from latex2mathml.converter import convert
from markupsafe import Markup

# One letter with a subscript (l_ts, W_Q, z_{k-1}), a number (M1), a star (N*), a power (M1^-C, η^(-1/2)) or a prime
# (α', M').
LETTER = re.compile(
    r"(?<![\w_])(?P<base>[A-Za-zΑ-ω])"
    r"(?:_(?:\{(?P<braced>[^{}]+)\}|(?P<sub>[A-Za-z0-9]+))|(?P<digit>[12])(?!\w)|(?P<star>\*))?"
    r"(?:\^(?P<power>-?[A-Za-z0-9]+|\([^()]*\))|(?P<prime>['′]))?(?![\w_'])"
)
GREEK = re.compile(r"[Α-ω]")
MATHML = re.compile(r"</?m[a-z]+(?: (?!on|href|xlink|style|class|id)[a-z]+=\"[^\"<>]*\")*\s*/?>")
LONGEST = 24  # characters of a word that is kept on one line


@functools.cache
def equation(latex: str) -> Markup:
    """A displayed formula, from LaTeX. Whatever is not MathML in it, such as markup inside \\text, becomes text."""
    try:
        found = convert(latex, display="block")
    except Exception:  # the converter cannot read it: show the source rather than nothing
        return Markup("<code>{}</code>").format(latex)
    return Markup(re.sub(r"<[^>]*>?", _only_mathml, found))


def _only_mathml(found: re.Match[str]) -> str:
    return found[0] if MATHML.fullmatch(found[0]) else html.escape(found[0])


def inline(text: str) -> Markup:
    """Plain text with letters with subscripts, stars and primes as mathematics; the rest is unchanged.

    >>> str(inline("l_ts < 5 & step_size"))
    '<math><msub><mi>l</mi><mi>ts</mi></msub></math> &lt; 5 &amp; step_size'
    """
    return Markup("".join(_word(part) for part in re.split(r"(\s+)", text)))


def _word(word: str) -> str:
    """A word; one that mixes signs and mathematics, such as O(ε), is kept on one line."""
    parts = []
    end = 0
    for found in LETTER.finditer(word):
        parts += [html.escape(word[end : found.start()]), _set(found)]
        end = found.end()
    text = "".join([*parts, html.escape(word[end:])])
    alone = text.startswith("<math>") and text.endswith("</math>") and text.count("<math>") == 1
    return f'<span class="together">{text}</span>' if "<math>" in text and not alone and len(word) < LONGEST else text


def _set(found: re.Match[str]) -> str:
    base = found["base"]
    below = found["braced"] or found["sub"] or found["digit"]
    power = found["power"] and found["power"].removeprefix("(").removesuffix(")").replace("-", "−")
    above = power or ("*" if found["star"] else "′" if found["prime"] else None)
    if not below and not above and not GREEK.match(base):
        return html.escape(found[0])
    if above == "′" and not below and not (GREEK.match(base) or base.isupper()):
        return html.escape(found[0])
    letter = f"<mi>{base}</mi>"
    if above == "′":  # the sign is already raised; a superscript would raise it twice
        letter, above = f'<mrow>{letter}<mo lspace="0" rspace="0">′</mo></mrow>', None
    sub = f"<mi>{html.escape(below)}</mi>" if below else ""
    sup = f"<{'mi' if power else 'mo'}>{html.escape(above)}</{'mi' if power else 'mo'}>" if above else ""
    tag = {(True, True): "msubsup", (True, False): "msub", (False, True): "msup"}.get((bool(sub), bool(sup)))
    return f"<math>{f'<{tag}>{letter}{sub}{sup}</{tag}>' if tag else letter}</math>"
