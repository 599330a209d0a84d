"""A report as Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from embinit.reports.analysis.lengths import length_tables
from embinit.reports.analysis.size_costs import size_table
from embinit.reports.legend import explanation, reproduction
from embinit.reports.model import Part, Summary, Table
from embinit.reports.writers import tables
from embinit.reports.writers.tables import selection_table


def markdown(summary: Summary, level: int = 1) -> str:
    """Return the report as Markdown, its title a heading of this level."""
    head = "#" * level
    lines = [
        f"{head} {text(summary.title)}",
        "",
        text(summary.question),
        "",
        f"**{text(str(summary.answer))}**",
        "",
    ]
    lines += [f"- {text(caveat)}" for caveat in summary.caveats] + [""] * bool(summary.caveats)
    lines += [f"{text(note)}\n" for note in summary.notes]
    whole = tables.overview(summary)
    if whole is not None:
        lines += [table(whole), ""]
    chosen = selection_table(summary.choices)
    if chosen is not None:
        lines += [table(chosen), "", f"{text(chosen.caption)}.", ""]
    for part in summary.parts:
        lines += _part(part, f"{head}#")
    lines += [f"{head}# How to read this", "", *(f"- {text(line)}" for line in explanation(summary)), ""]
    lines += [
        f"{head}# Run it again",
        "",
        *(f"    {command.replace(chr(10), ' ')}" for command in summary.commands),
        "",
    ]
    lines += [f"- {text(name)}: {text(value)}" for name, value in reproduction(summary)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def _part(part: Part, head: str) -> list[str]:
    lines = [f"{head} {text(part.name)}", ""]
    if part.missing:
        return [*lines, f"*Not run: {text(part.missing)}*", ""]
    lines += [text(str(part.answer)), ""]
    scores = tables.block_table(part)
    lines += [table(scores), "", f"{text(scores.caption)}.", ""]
    lines += [f"- {text(note)}" for note in part.notes] + [""]
    lines += [f"- source {text(name)}: {text(about)}" for name, about in part.sources] + [""]
    for captioned in length_tables(part):
        lines += [table(captioned), "", f"{text(captioned.caption)}.", ""]
    for more in (
        size_table(part),
        tables.tests(part),
        tables.others(part),
        tables.epoch_choices(part),
        tables.shapes(part),
    ):
        if more is not None:
            lines += [table(more), ""]
    for example in part.examples:
        lines += [f"- sentence {example.number}{': ' + text(example.source) if example.source else ''}"]
        lines += [f"  - *reference*: {text(example.reference)}"] if example.reference else []
        lines += [f"  - {text(label)}: {text(output)}" for label, output in example.outputs.items()]
    return [*lines, ""]


def table(content: Table) -> str:
    """Return a table as Markdown, with the best in bold and numbers aligned right."""
    rule = ["---"] * content.words + ["--:"] * (len(content.header) - content.words)
    body = [[f"**{text(str(cell))}**" if cell.strong else text(str(cell)) for cell in row] for row in content.rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in ([text(name) for name in content.header], rule, *body))


def details(head: str, lines: Sequence[str], name: str = "") -> list[str]:
    """Return lines folded under a head with a bold name; the head is HTML, not Markdown."""
    bold = f"<b>{html.escape(' '.join(name.split()))}</b>: " if name else ""
    return [
        "<details>",
        f"<summary>{bold}{html.escape(' '.join(head.split()))}</summary>",
        "",
        *lines,
        "</details>",
        "",
    ]


def text(plain: str) -> str:
    """Return text on one line, escaped so that Markdown shows no tag, link, table bar or emphasis in it."""
    plain = " ".join(plain.split())
    plain = re.sub(r"([\\`*|~]|\](?=[(\[:])|\[(?=[\^ xX]))", r"\\\1", plain)
    plain = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\_", plain)
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    plain = re.sub(r"(?i)\b(?:https?|ftp)://|\bwww\.", _unlinked, plain)
    return re.sub(r"^(#|[-+=](?=[-+=\s]|$)|\d+[.)](?=\s|$))", _guarded, plain)


def _unlinked(match: re.Match[str]) -> str:
    return f"{match[0][:-1]}&#{ord(match[0][-1])};"


def _guarded(match: re.Match[str]) -> str:
    return match[0][:-1] + "\\" + match[0][-1]
