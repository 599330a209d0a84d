"""A report's tables as LaTeX, for the package booktabs."""

from __future__ import annotations

import re

from embinit.format import ended
from embinit.reports.model import Summary, Table
from embinit.reports.writers import tables

_SPARE = ("95 %", "p (Holm)")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "-": "{-}",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "σ": r"$\sigma$",
    "√": r"$\sqrt{}$",
    "–": "--",
    "’": "'",
    "*": "$^{*}$",
    "[": "{[}",
    "]": "{]}",
}


def latex(summary: Summary) -> str:
    """Return the report's tables as LaTeX, an environment for each; needs booktabs, textcomp and UTF-8."""
    lines = [
        "% Needs \\usepackage{booktabs}, and \\usepackage[T1]{fontenc} with pdflatex.",
        f"% {_comment(summary.title)}: {_comment(str(summary.answer))}",
        *(f"% {_comment(caveat)}" for caveat in summary.caveats),
        "",
    ]
    whole = tables.overview(summary)
    lines += [environment(whole, f"{summary.title}: all blocks", f"tab:{_label(summary.name)}"), ""] if whole else []
    for place, part in enumerate(summary.parts, 1):
        if part.missing:
            lines += [f"% {_comment(part.name)} not run: {_comment(part.missing)}", ""]
        else:
            narrow = _narrow(tables.block_table(part))
            label = f"tab:{_label(summary.name)}-{place}"
            vectors = "".join(f" {name}: {ended(about)}" for name, about in part.sources)
            caption = f"{part.name}. {narrow.caption}. {part.answer}{vectors}"
            lines += [environment(narrow, caption, label), ""]
    return "\n".join(lines)


def _narrow(table: Table) -> Table:
    """Return the table without columns that do not fit a page; the CSV has all columns."""
    kept = [place for place, name in enumerate(table.header) if name not in _SPARE]
    rows = tuple(tuple(row[place] for place in kept) for row in table.rows)
    return Table(table.caption, tuple(table.header[place] for place in kept), rows)


def environment(table: Table, caption: str, label: str) -> str:
    """Return a table environment with rules of booktabs; the best is bold."""
    body = [
        " & ".join(rf"\textbf{{{text(str(cell))}}}" if cell.strong else text(str(cell)) for cell in row) + r" \\"
        for row in table.rows
    ]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering\small",
            rf"\caption{{{text(caption)}}}",
            rf"\label{{{label}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            r"\toprule",
            " & ".join(text(name) for name in table.header) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def text(plain: str) -> str:
    """Return text with LaTeX's special characters escaped."""
    return "".join(_SPECIAL.get(letter, letter) for letter in " ".join(plain.split()) if letter.isprintable())


def _comment(plain: str) -> str:
    return " ".join(plain.split())


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "report"
