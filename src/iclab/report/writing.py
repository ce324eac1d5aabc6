"""A referee's report as Markdown and as LaTeX: templates beside this file, filled with escaped text.

Letters with subscripts and primes become formulas. LaTeX gets ASCII only, so that every engine reads it.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Callable
from importlib import resources

import jinja2

from iclab.report.formats import plain
from iclab.report.referee import Report

LETTER = re.compile(r"(?<![A-Za-z0-9_\\])([A-Za-zΑ-ω])_(?:\{([^{}]+)\}|([A-Za-z0-9]+|\*))('?)(?![A-Za-z0-9_])")
GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau",
    "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda",
    "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
SIGNS = {
    "≤": r"$\le$", "≥": r"$\ge$", "≈": r"$\approx$", "·": r"$\cdot$", "×": r"$\times$", "±": r"$\pm$", "−": "$-$",
    "→": r"$\to$", "√": r"$\surd$", "∞": r"$\infty$", "‖": r"$\|$", "∝": r"$\propto$", "∈": r"$\in$", "⊙": r"$\odot$",
    "≠": r"$\ne$", "≪": r"$\ll$", "≫": r"$\gg$", "∩": r"$\cap$", "∪": r"$\cup$", "′": "$'$", "†": r"\dag{}",
    "…": r"\ldots{}", "–": "--", "‑": "-", "’": "'", "“": "``", "”": "''", "ᵀ": r"$^{\top}$", "½": r"$\frac12$",
    "ᵢ": "$_i$", "ⱼ": "$_j$", "ℓ": r"$\ell$", "⟂": r"$\perp$", "⊥": r"$\perp$", "é": r"\'e", "~": r"$\sim$",
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#",
    "_": r"\_", "{": r"\{", "}": r"\}", "<": "$<$", ">": "$>$", "|": "$|$", "*": "$*$", '"': "''",
    "\N{MICRO SIGN}": r"$\mu$",
}  # fmt: skip
SUPER, SUB = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "₀₁₂₃₄₅₆₇₈₉₋₊"
POWER = re.compile(f"[{SUPER}]+|[{SUB}]+")
DIGITS = str.maketrans(SUPER + SUB, "0123456789-+" * 2)


def markdown(report: Report) -> str:
    """The report as Markdown with formulas between dollar signs, as GitHub and MyST read them."""
    return _filled("referee.md", report, _markdown_text)


def latex(report: Report) -> str:
    """The report as a LaTeX document."""
    return _filled("referee.tex", report, _latex_text)


def _filled(name: str, report: Report, escape: Callable[[str], str]) -> str:
    """The template with every value escaped; `|raw` is for code, which Markdown shows unchanged."""

    def finalize(value: object) -> str:
        return str(value) if isinstance(value, Raw | int) else escape(str(value))

    environment = jinja2.Environment(
        block_start_string="<%", block_end_string="%>", variable_start_string="<<", variable_end_string=">>",
        comment_start_string="<#", comment_end_string="#>", trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined, finalize=finalize, autoescape=False, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["raw"] = Raw
    text = (resources.files("iclab.report") / name).read_text(encoding="utf-8")
    given = {field.name: getattr(report, field.name) for field in dataclasses.fields(report)}
    filled = environment.from_string(text).render(**given)
    return re.sub(r"[ \t]+\n", "\n", re.sub(r"\n{3,}", "\n\n", filled))


class Raw(str):
    """Text that needs no escaping."""


def _markdown_text(text: str) -> str:
    """Text escaped for Markdown, with letters with subscripts as formulas.

    >>> _markdown_text("κ_a' <= 2 and λ_* | x_y_z")
    "$κ_{a}'$ ≤ 2 and $λ_{*}$ \\\\| x\\\\_y\\\\_z"
    """
    text = plain(text).replace("<=", "≤").replace(">=", "≥")
    return _around_letters(text, lambda base, sub, prime: f"${base}_{{{sub}}}{prime}$", _markdown_escaped)


def _markdown_escaped(text: str) -> str:
    return re.sub(r"([\\`*_|$])", r"\\\1", text).replace("<", "&lt;")


def _latex_text(text: str) -> str:
    """Text escaped for LaTeX, in ASCII.

    >>> _latex_text("κ_a' ≥ 5 %, M⁻²")
    "$\\\\kappa_{\\\\mathrm{a}}'$ $\\\\ge$ 5 \\\\%, M$^{-2}$"
    """
    text = plain(text).replace("<=", "≤").replace(">=", "≥")

    def formula(base: str, sub: str, prime: str) -> str:
        below = sub if sub == "*" else f"\\mathrm{{{sub}}}"
        return f"${_letter(base)}_{{{below}}}{prime}$"

    return _around_letters(text, formula, _latex_escaped)


def _letter(base: str) -> str:
    return f"\\{GREEK[base]}" if base in GREEK else base


def _latex_escaped(text: str) -> str:
    text = POWER.sub(_power, text)
    return "".join(part if part.startswith("\0") else _signs(part) for part in re.split(r"(\0[^\0]*\0)", text)).replace(
        "\0", ""
    )


def _power(found: re.Match[str]) -> str:
    sign = "^" if found[0][0] in SUPER else "_"
    return f"\0${sign}{{{found[0].translate(DIGITS)}}}$\0"


def _signs(text: str) -> str:
    return "".join(_sign(sign) for sign in text)


@functools.cache
def _sign(sign: str) -> str:
    if sign in SIGNS:
        return SIGNS[sign]
    if sign in GREEK:
        return f"$\\{GREEK[sign]}$"
    return sign if sign.isascii() else f"[{unicodedata.name(sign, 'unknown sign').lower()}]"


def _around_letters(text: str, formula: Callable[[str, str, str], str], other: Callable[[str], str]) -> str:
    """The text with `formula` applied to letters with subscripts and `other` to the rest."""
    parts, end = [], 0
    for found in LETTER.finditer(text):
        parts += [other(text[end : found.start()]), formula(found[1], found[2] or found[3], found[4])]
        end = found.end()
    return "".join([*parts, other(text[end:])])
