"""Summaries of objects: a few lines in a terminal, a small table with a histogram in a notebook, and a page of them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embinit.format import printable
from embinit.html import Html, element, joined

Numbers = npt.NDArray[np.floating[Any]]

#: Lines of a terminal are wrapped here.
_WIDTH = 100
#: A histogram reads at most this many numbers of a matrix.
_NUMBERS = 500_000
_BINS = 96
#: Both are readable on white and on black paper.
HISTOGRAM_COLORS = ("#2f7fc1", "#d8731c", "#3f9a57")
_SIGNS = {"good": "✓", "note": "•", "harm": "✗"}
#: The size of a histogram, and the height of its axis.
_CHART_WIDTH, _CHART_HEIGHT, _AXIS = 560, 150, 22

_STYLE = """
.embinit { max-width: 56rem; font-size: 0.92em; line-height: 1.5; }
.embinit .headline { font-weight: 600; font-size: 1.1em; margin: 0 0 0.6em; }
.embinit h2 { font-size: 1.05em; margin: 0 0 0.5em; }
.embinit .wide { overflow-x: auto; margin: 0.7em 0; }
.embinit table { border-collapse: collapse; border: 0; margin: 0; }
.embinit th, .embinit td { text-align: left; vertical-align: top; padding: 0.15em 1.2em 0.15em 0; background: none; }
.embinit th { font-weight: 400; opacity: 0.75; white-space: nowrap; }
.embinit td { overflow-wrap: anywhere; white-space: normal; }
.embinit .numbers thead th { border-bottom: 1px solid rgb(128 128 128 / 0.5); }
.embinit .numbers td, .embinit .numbers thead th { text-align: right; white-space: nowrap; }
.embinit .numbers th[scope=row] { white-space: pre; }
.embinit .numbers th[scope=row], .embinit .numbers thead th:first-child { text-align: left; }
@media (max-width: 40rem) { .embinit th { white-space: normal; } }
.embinit ul { list-style: none; margin: 0.7em 0; padding: 0; }
.embinit li { padding-left: 1.5em; text-indent: -1.5em; margin: 0.2em 0; overflow-wrap: anywhere; }
.embinit .sign { display: inline-block; width: 1.5em; text-indent: 0; font-weight: 700; }
.embinit .good { color: #3f9a57; } .embinit .note { color: #b5801a; } .embinit .harm { color: #d8492f; }
.embinit pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0.4em 0; padding: 0.6em;
  background: rgb(128 128 128 / 0.12); }
.embinit figure { margin: 0.9em 0; } .embinit figcaption { opacity: 0.75; font-size: 0.93em; }
.embinit svg { display: block; width: 100%; max-width: 35rem; height: auto; overflow: visible; }
.embinit svg text { fill: currentColor; opacity: 0.75; font-size: 13px; }
.embinit .key { display: inline-block; margin-right: 1.2em; }
.embinit .swatch { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.4em; border-radius: 2px; }
"""
_PAGE_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 58rem; padding: 1.5rem; font: 16px/1.5 system-ui, "Liberation Sans", sans-serif;
  background: #fdfcf9; color: #1d1f23; }
h1 { font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; margin: 0 0 1.2rem; }
footer { margin-top: 2rem; opacity: 0.75; font-size: 0.85rem; }
section + section { margin-top: 2rem; }
@media (prefers-color-scheme: dark) { body { background: #15171a; color: #e8e6e1; } }
"""


@dataclass(frozen=True)
class HistogramChart:
    """Histograms of several samples on one axis, which is linear near zero and logarithmic beyond."""

    #: the edges of the bins as positions on the axis
    grid: tuple[float, ...]
    #: positions on the axis with their labels
    ticks: tuple[tuple[float, str], ...]
    #: the name of each sample, and the share of its numbers in each bin
    layers: tuple[tuple[str, tuple[float, ...]], ...]

    def html(self) -> Html:
        """Return the chart as inline SVG with its legend."""
        low, high = self.grid[0], self.grid[-1]

        def x(position: float) -> str:
            return f"{(position - low) / (high - low) * _CHART_WIDTH:.1f}"

        drawn = []
        for color, (_, shares) in zip(HISTOGRAM_COLORS, self.layers, strict=False):
            peak = max(shares)
            heights = [f"{(1 - share / peak) * (_CHART_HEIGHT - 4) + 4:.1f}" for share in shares]
            outline = " ".join(f"V{y} H{x(edge)}" for y, edge in zip(heights, self.grid[1:], strict=True))
            path = f"M0 {_CHART_HEIGHT} {outline} V{_CHART_HEIGHT} Z"
            drawn.append(element("path", d=path, fill=color, fill_opacity="0.3", stroke=color, stroke_width="1.2"))
        base = {"y1": _CHART_HEIGHT, "y2": _CHART_HEIGHT, "stroke": "currentColor", "stroke_opacity": "0.5"}
        drawn.append(element("line", x1=0, x2=_CHART_WIDTH, **base))
        for position, label in self.ticks:
            at = x(position)
            mark = {"x1": at, "x2": at, "y1": _CHART_HEIGHT, "y2": _CHART_HEIGHT + 4}
            drawn.append(element("line", **mark, stroke="currentColor", stroke_opacity="0.5"))
            drawn.append(element("text", label, x=at, y=_CHART_HEIGHT + 17, text_anchor="middle"))
        names = ", ".join(name for name, _ in self.layers)
        size = f"0 0 {_CHART_WIDTH} {_CHART_HEIGHT + _AXIS}"
        svg = element("svg", *drawn, viewBox=size, role="img", aria_label=f"Histogram: {names}")
        keys = [
            element("span", element("span", class_="swatch", style=f"background: {color}"), name, class_="key")
            for color, (name, _) in zip(HISTOGRAM_COLORS, self.layers, strict=False)
        ]
        scale = " Each histogram has its own height." if len(self.layers) > 1 else ""
        about = element("div", f"The axis is logarithmic away from zero.{scale}")
        return element("figure", svg, element("figcaption", *keys, about))


@dataclass(frozen=True)
class PanelTable:
    """A table of numbers: the first column names the rows."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def html(self) -> Html:
        """Return the table."""
        head = element("tr", *(element("th", header, scope="col") for header in self.headers))
        body = [
            element("tr", element("th", label, scope="row"), *(element("td", value) for value in values))
            for label, *values in self.rows
        ]
        return element(
            "div",
            element("table", element("thead", head), element("tbody", *body)),
            class_="wide numbers",
            tabindex="0",
        )


@dataclass(frozen=True)
class Panel:
    """The summary of one object. All texts are plain; `html` escapes them, and `text` drops control characters."""

    title: str
    #: labels and values
    facts: Sequence[tuple[str, str]] = ()
    #: the sentence that matters most
    headline: str = ""
    #: severities (`good`, `note`, `harm`) and sentences
    notes: Sequence[tuple[str, str]] = ()
    tables: Sequence[PanelTable] = ()
    histogram: HistogramChart | None = None
    #: commands or code to copy, each with the sentence before it
    code: Sequence[tuple[str, str]] = ()

    def text(self) -> str:
        """Return the title, the headline, the facts, the notes and the code as lines for a terminal."""
        width = max((len(label) for label, _ in self.facts), default=0)
        lines = [self.title, *(_wrapped("", self.headline) if self.headline else [])]
        for label, value in self.facts:
            lines += _wrapped(f"  {label:{width}}  ", value)
        for severity, sentence in self.notes:
            lines += _wrapped(f"  {_SIGNS[severity]} ", sentence)
        for sentence, command in self.code:
            lines += [sentence, f"  {command}"]
        return "\n".join(_printable(line) for line in lines)

    def html(self, *, style: bool = True, title: bool = True) -> Html:
        """Return the summary for a notebook; a page has the style sheet, and perhaps the title, in another place."""
        facts = [element("tr", element("th", label, scope="row"), element("td", value)) for label, value in self.facts]
        notes = [
            element("li", element("span", _SIGNS[severity], class_=f"sign {severity}"), sentence)
            for severity, sentence in self.notes
        ]
        return element(
            "div",
            element("style", Html(_STYLE)) if style else None,
            element("h2", self.title) if title else None,
            element("p", self.headline, class_="headline") if self.headline else None,
            element("div", element("table", element("tbody", *facts)), class_="wide") if facts else None,
            element("ul", *notes) if notes else None,
            *(table.html() for table in self.tables),
            None if self.histogram is None else self.histogram.html(),
            *(
                joined(element("p", sentence), element("pre", element("code", command)))
                for sentence, command in self.code
            ),
            class_="embinit",
        )


def page(*panels: Panel) -> str:
    """Return one HTML document that shows panels and needs no network. The first panel gives the title."""
    title = panels[0].title
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} · embinit"),
        element("style", Html(_STYLE + _PAGE_STYLE)),
    )
    sections = [element("section", panel.html(style=False, title=place > 0)) for place, panel in enumerate(panels)]
    footer = element("footer", "Made by embinit. This page needs no network.")
    body = element("body", element("h1", title), element("main", *sections), footer)
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def histogram(samples: Mapping[str, Numbers]) -> HistogramChart | None:
    """Return the histograms of the finite numbers of at most three samples; None if no sample has two different numbers."""
    finite = {name: values[np.isfinite(values)].astype(np.float64) for name, values in samples.items()}
    finite = {name: values for name, values in finite.items() if values.size and values.std() > 0}
    if not finite:
        return None
    # The same axis must show σ 0.3 and σ 300, so it is linear near zero and logarithmic beyond.
    linear = min(float(values.std()) for values in finite.values())
    edge = max(float(np.abs(values).max()) for values in finite.values())
    grid = np.linspace(-np.arcsinh(edge / linear), np.arcsinh(edge / linear), _BINS + 1)
    edges = np.sinh(grid) * linear
    edges[[0, -1]] = -edge, edge  # the widest number stays inside, whatever the rounding
    layers = [(name, tuple((np.histogram(values, edges)[0] / values.size).tolist())) for name, values in finite.items()]
    ticks = [(float(np.arcsinh(tick / linear)), f"{tick:g}".replace("-", "−")) for tick in _ticks(edge, linear)]
    return HistogramChart(tuple(grid.tolist()), tuple(ticks), tuple(layers))


def sampled(matrix: Numbers) -> Numbers:
    """Return the numbers of evenly spaced rows of a matrix, as many as a histogram needs."""
    step = -(-matrix.size // _NUMBERS) or 1
    return np.asarray(matrix[::step]).ravel()


def _ticks(edge: float, linear: float) -> list[float]:
    """Return zero and the powers of ten on the axis, at most five on each side."""
    first = 10.0 ** np.floor(np.log10(linear))
    powers = [float(first * 10.0**i) for i in range(int(np.ceil(np.log10(edge / first))) + 1)]
    labelled = [power for power in powers if linear <= power <= edge]
    labelled = labelled[:: -(-len(labelled) // 5) or 1]
    return [-power for power in reversed(labelled)] + [0.0] + labelled


def _wrapped(label: str, text: str) -> list[str]:
    indent = " " * len(label)
    lines = textwrap.wrap(text, _WIDTH, initial_indent=label, subsequent_indent=indent, break_long_words=False)
    return lines or [label.rstrip()]


def _printable(line: str) -> str:
    return printable(line, kept="\t")
