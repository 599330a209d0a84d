"""Static pictures for documents: validation curves with bands (Figure 1), score against scale."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, closest, require
from embinit.files import replacing
from embinit.reports.types import Part, Summary

FORMATS = ("svg", "png", "pdf")
#: Colours that are told apart by those who see red and green alike; the first is the baseline's. As on the page.
COLORS = ("#55595f", "#0072b2", "#c2410c", "#00805f", "#a8467f", "#8a6a00", "#3b5bdb", "#7a4a2b")
_DASHES = ("-", "--", ":", "-.", (0, (1, 3)), (0, (8, 2)))
#: Lines beyond these make a chart that nobody reads.
_LINES = 16


def figures(summary: Summary, folder: Path, form: str = "svg") -> list[Path]:
    """Return the pictures of a report, written into a folder: NAME-N-curves and NAME-N-sweep for the Nth block."""
    made = []
    for place, part in enumerate(summary.parts, 1):
        stem = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', summary.name)}-{place}"
        if part.sweep is not None and part.sweep.lines:
            made.append(folder / f"{stem}-sweep.{form}")
            sweep_figure(part, made[-1])
        elif any(part.curves.values()):
            made.append(folder / f"{stem}-curves.{form}")
            curves_figure(part, made[-1], summary.series)
    return made


def curves_figure(part: Part, path: Path, series: tuple[str, ...], history: str = "") -> None:
    """Write a history over epochs, the mean over seeds with a band of one σ to each side; the first history by default."""
    named = history or next(iter(part.curves))
    if named not in part.curves:
        raise EmbinitError(f"{part.name} has no history {named!r}{closest(named, part.curves)}")
    settings = list(dict.fromkeys(row.setting for row in part.rows))
    setting = {row.label: settings.index(row.setting) for row in part.rows}

    def draw(axes: Any) -> None:
        for curve in part.curves[named][:_LINES]:
            color = COLORS[series.index(curve.series) % len(COLORS)] if curve.series in series else COLORS[0]
            means = [float("nan") if value is None else value for value in curve.mean]
            axes.plot(
                curve.epochs, means, color=color, linestyle=_DASHES[setting[curve.label] % len(_DASHES)], linewidth=1.8,
                label=curve.label,
            )  # fmt: skip
            band = [(x, low, high) for x, low, high in zip(curve.epochs, curve.low, curve.high, strict=True)
                    if low is not None and high is not None]  # fmt: skip
            if band:
                axes.fill_between(*zip(*band, strict=True), color=color, alpha=0.15, linewidth=0)
        axes.set_xlabel("epoch")
        axes.set_ylabel(named)

    _write(path, part.name + _left_out(len(part.curves[named])), draw)


def sweep_figure(part: Part, path: Path) -> None:
    """Write the score against the swept number, with 95 % intervals."""
    sweep = part.sweep
    if sweep is None:
        raise EmbinitError(f"{part.name} sweeps nothing")

    def draw(axes: Any) -> None:
        for name, line in list(sweep.lines.items())[:_LINES]:
            color, dash = sweep.looks[name]
            means = [point.mean for point in line]
            below = [point.mean - (point.mean if point.low is None else point.low) for point in line]
            above = [(point.mean if point.high is None else point.high) - point.mean for point in line]
            axes.errorbar(
                [point.x for point in line], means, yerr=[below, above], color=COLORS[color], marker="o", markersize=4,
                linestyle=_DASHES[dash % len(_DASHES)], linewidth=1.6, elinewidth=1.1, label=name,
            )  # fmt: skip
        if sweep.logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel(sweep.axis)
        axes.set_ylabel(f"{part.metric.label} ({part.metric.split})")

    _write(path, part.name + _left_out(len(sweep.lines)), draw)


def _left_out(count: int) -> str:
    return f" (the first {_LINES} of {count} lines)" if count > _LINES else ""


def _write(path: Path, title: str, draw: Callable[[Any], None]) -> None:
    form = path.suffix.lstrip(".").lower()
    if form not in FORMATS:
        raise EmbinitError(f"cannot draw {path.name}; the name must end in one of .{', .'.join(FORMATS)}")
    matplotlib = require("matplotlib", "plot", "a picture")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Text of an experiment is text: a $ in it is no formula. Equal data gives equal files.
    settings = {"text.parse_math": False, "svg.hashsalt": "embinit", "svg.fonttype": "none", "font.size": 9}
    with matplotlib.rc_context(settings):
        figure, axes = pyplot.subplots(figsize=(6.8, 3.9), layout="constrained")
        draw(axes)
        axes.set_title(title, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e6e3dc", linewidth=0.7)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=8)
        buffer = io.BytesIO()
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
        figure.savefig(buffer, format=form, dpi=160, metadata=undated)
        pyplot.close(figure)
    with replacing(path) as out:
        out.write(buffer.getvalue())
