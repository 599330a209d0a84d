"""Static pictures for documents: validation curves with bands (Figure 1), score against scale, and by length."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, closest, require
from embinit.files import replacing
from embinit.format import compact
from embinit.reports.analysis.curves import RATIO
from embinit.reports.analysis.lengths import ScoresByLength, length_effects, scores_by_length
from embinit.reports.metrics import SEPARATOR
from embinit.reports.model import Curve, Part, Summary, SweepPoint
from embinit.reports.writers.axis_marks import AxisMark
from embinit.reports.writers.completed import is_run

FORMATS = ("svg", "png", "pdf")
#: Colours that readers with red-green blindness can tell apart; the first is the baseline's. The page has the same.
COLORS = ("#55595f", "#0072b2", "#c2410c", "#00805f", "#a8467f", "#8a6a00", "#3b5bdb", "#7a4a2b")
_DASHES = ("-", "--", ":", "-.", (0, (1, 3)), (0, (8, 2)))
#: The largest number of panels, of lines in a panel, and of lines with different settings in one panel.
_PANELS, _LINES, _SHARED = 8, 16, 4
#: The name of a picture's file.
_NAMED = re.compile(r"[A-Za-z0-9._-]+-\d+-(curves|sweep|lengths)\.svg")
#: The meaning of the bars of sweeps and of lengths.
_BARS = "bars: 95 % intervals from one σ, estimated from all points"
_INK = "#8b8f96"
#: A panel: its title, and the function that draws it.
Panel = tuple[str, Callable[[Any], None]]


def names(summary: Summary, form: str = "svg") -> dict[int, tuple[str, ...]]:
    """Return the names of a report's pictures, NAME-N-KIND, by the number N of their block.

    KIND is `sweep` or `curves`, and `lengths` if a start's difference depends on the length of sentences.
    """
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", summary.name)
    return {
        place: tuple(f"{stem}-{place}-{kind}.{form}" for kind in kinds)
        for place, part in enumerate(summary.parts, 1)
        if (kinds := _kinds(part, summary.colors))
    }


def _kinds(part: Part, colors: Mapping[str, int]) -> dict[str, Callable[[Path, Sequence[AxisMark]], None]]:
    """Return the pictures of a block, each with the function that writes it."""
    writers: dict[str, Callable[[Path, Sequence[AxisMark]], None]] = {}
    if not is_run(part):
        return writers
    if part.sweep is not None and part.sweep.lines:
        writers["sweep"] = lambda path, marks: sweep_figure(part, path, marks)
    elif any(part.curves.values()):
        writers["curves"] = lambda path, _: curves_figure(part, path, colors)
    if length_effects(part.rows, part.metric.split):
        writers["lengths"] = lambda path, _: lengths_figure(part, path, colors)
    return writers


def figures(
    summary: Summary, folder: Path, form: str = "svg", marks: Mapping[tuple[str, str], Sequence[AxisMark]] | None = None
) -> list[Path]:
    """Write the pictures of a report into a folder and return them; blocks without runs of their own have none."""
    paths = []
    for place, named in names(summary, form).items():
        part = summary.parts[place - 1]
        for name, write in zip(named, _kinds(part, summary.colors).values(), strict=True):
            paths.append(folder / name)
            write(paths[-1], (marks or {}).get((summary.name, part.name), ()))
    return paths


def remove_others(folder: Path, kept: Iterable[Path]) -> list[Path]:
    """Remove pictures with names like a report's, except those kept, and return the removed ones."""
    gone = sorted({path for path in folder.glob("*.svg") if _NAMED.fullmatch(path.name)} - set(kept))
    for path in gone:
        path.unlink()
    return gone


def curves_figure(part: Part, path: Path, colors: Mapping[str, int], history: str = "") -> None:
    """Write a history over epochs, the mean over seeds with a band of one σ to each side; the first history by default.

    Settings have a panel each, with the same axes.
    """
    named = history or next(iter(part.curves))
    if named not in part.curves:
        raise EmbinitError(f"{part.name} has no history {named!r}{closest(named, part.curves)}")
    setting = {row.label: row.setting for row in part.rows}
    groups: dict[str, list[Curve]] = {}
    for curve in part.curves[named]:
        groups.setdefault(setting[curve.label], []).append(curve)

    def drawing(listed: Sequence[Curve]) -> Callable[[Any], None]:
        def draw(axes: Any) -> None:
            from matplotlib.ticker import MaxNLocator

            for curve in listed[:_LINES]:
                color, dash = _look(curve.series, colors)
                marker = "o" if len(curve.epochs) == 1 else ""  # a line of one point would be invisible
                axes.plot(
                    curve.epochs, curve.mean, color=color, linestyle=dash, linewidth=1.8, marker=marker, label=curve.series
                )  # fmt: skip
                band = [(x, low, high) for x, low, high in zip(curve.epochs, curve.low, curve.high, strict=True)
                        if low is not None and high is not None]  # fmt: skip
                if band:
                    axes.fill_between(*zip(*band, strict=True), color=color, alpha=0.15, linewidth=0)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))

        return draw

    panels = [(name + _left_out(len(listed)), drawing(listed)) for name, listed in groups.items()]
    _write(path, part.name, panels, ("epoch", named))


def sweep_figure(part: Part, path: Path, marks: Sequence[AxisMark] = ()) -> None:
    """Write the score against the swept number, with 95 % intervals; lines at the same place are drawn slightly apart.

    Marks are drawn if the number is a ratio. Many lines get several panels, one for each kind of dash.
    """
    sweep = part.sweep
    if sweep is None:
        raise EmbinitError(f"{part.name} sweeps nothing")
    apart = len(sweep.lines) > _SHARED
    groups: dict[int, dict[str, tuple[SweepPoint, ...]]] = {}
    for name, line in sweep.lines.items():
        groups.setdefault(sweep.looks[name][1] if apart else 0, {})[name] = line
    shared = [_shared([sweep.words[name] for name in group]) if len(groups) > 1 else () for group in groups.values()]
    places = sorted({point.x for line in sweep.lines.values() for point in line})

    def drawing(listed: Mapping[str, tuple[SweepPoint, ...]], common: Sequence[str]) -> Callable[[Any], None]:
        def draw(axes: Any) -> None:
            drawn = list(listed.items())[:_LINES]
            for number, (name, line) in enumerate(drawn):
                color, dash = sweep.looks[name]
                axes.errorbar(
                    [_aside(x, number - (len(drawn) - 1) / 2, places, sweep.logarithmic) for x in (p.x for p in line)],
                    [point.mean for point in line],
                    yerr=[
                        [point.mean - (point.mean if point.low is None else point.low) for point in line],
                        [(point.mean if point.high is None else point.high) - point.mean for point in line],
                    ],
                    color=COLORS[color % len(COLORS)], marker="o", markersize=4, linewidth=1.6, elinewidth=1.1,
                    linestyle="-" if apart else _DASHES[dash % len(_DASHES)],
                    label=SEPARATOR.join(word for word in sweep.words[name] if word not in common),
                )  # fmt: skip
            if sweep.axis == RATIO:
                _mark(axes, marks)
            if sweep.logarithmic:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter(lambda value, _: compact(value))
            if len(places) <= _SHARED * 2 + 1:
                axes.set_xticks(places, labels=[compact(x) for x in places])
                axes.minorticks_off()

        return draw

    panels = [
        (SEPARATOR.join(common) + _left_out(len(group)), drawing(group, common))
        for group, common in zip(groups.values(), shared, strict=True)
    ]
    labels = (f"{sweep.axis}\n{_BARS}", f"{part.metric.label} ({part.metric.split})")
    _write(path, part.name, panels, labels)


def lengths_figure(part: Part, path: Path, colors: Mapping[str, int]) -> None:
    """Write each start's difference to its baseline by length of sentences, a panel for each split."""
    tables = [
        scores for scores in scores_by_length(part.rows, part.metric.split) if any(line.base for line in scores.lines)
    ]
    if not tables:
        raise EmbinitError(f"{part.name} has no scores by length to compare")
    lows = sorted({bucket.low for scores in tables for bucket in scores.buckets})

    def drawing(scores: ScoresByLength) -> Callable[[Any], None]:
        def draw(axes: Any) -> None:
            axes.axhline(0, color=_INK, linewidth=1)
            lines_with_base = [line for line in scores.lines if line.base][:_LINES]
            for number, line in enumerate(lines_with_base):
                color, dash = _look(line.series, colors)
                drawn = [
                    (lows.index(at.low), point) for at, point in zip(scores.buckets, line.points, strict=True) if point
                ]
                axes.errorbar(
                    [x + 0.05 * (number - (len(lines_with_base) - 1) / 2) for x, _ in drawn],
                    [point.mean for _, point in drawn],
                    yerr=[0 if point.high is None else point.high - point.mean for _, point in drawn],
                    color=color, linestyle=dash, marker="o", markersize=4, linewidth=1.6, elinewidth=1.1,
                    label=line.label,
                )  # fmt: skip
            axes.set_xticks(range(len(lows)), labels=[str(max(1, low)) for low in lows])

        return draw

    bases = " or ".join(dict.fromkeys(line.base for scores in tables for line in scores.lines if line.base))
    panels = [(scores.metric.split if len(tables) > 1 else "", drawing(scores)) for scores in tables]
    axes = (f"tokens in a sentence, from this number to the next\n{_BARS}", f"{part.metric.label} against {bases}")
    _write(path, part.name, panels, axes)


def _look(name: str, colors: Mapping[str, int]) -> tuple[str, Any]:
    """Return the colour and dash of a series."""
    turn, place = divmod(colors.get(name, 0), len(COLORS))
    return COLORS[place], _DASHES[turn % len(_DASHES)]


def _left_out(count: int) -> str:
    return f" (the first {_LINES} of {count} lines)" if count > _LINES else ""


def _shared(names_of: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the words that all lines of a group have in their names."""
    return tuple(word for word in names_of[0] if all(word in words for words in names_of))


def _aside(x: float, steps: float, places: Sequence[float], logarithmic: bool) -> float:
    """Return a place moved by a number of small steps, so that intervals at one place do not overlap."""
    if logarithmic:
        return float(x * (places[-1] / places[0]) ** (0.006 * steps))
    return x + 0.006 * steps * (places[-1] - places[0])


def _mark(axes: Any, marks: Sequence[AxisMark]) -> None:
    for number, mark in enumerate(marks):
        if mark.low < mark.high:
            axes.axvspan(mark.low, mark.high, color=_INK, alpha=0.22, linewidth=0, label=mark.label, zorder=0)
        else:
            style = _DASHES[1 + number % (len(_DASHES) - 1)]
            axes.axvline(mark.low, color=_INK, linestyle=style, linewidth=1.2, label=mark.label, zorder=0)


def _columns(names: Iterable[str], inches: float) -> int:
    """Return the number of legend entries that fit side by side; a line's sample is as wide as seven letters."""
    lengths = [len(name) + 7 for name in names]
    return max(1, min(len(lengths), int(14 * inches / max(lengths, default=1))))


def _write(path: Path, title: str, panels: Sequence[Panel], labels: tuple[str, str]) -> None:
    form = path.suffix.lstrip(".").lower()
    if form not in FORMATS:
        raise EmbinitError(f"cannot draw {path.name}; the name must end in one of .{', .'.join(FORMATS)}")
    matplotlib = require("matplotlib", "plot", "a picture")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.container import ErrorbarContainer

    drawn = list(panels[:_PANELS])
    left = f" (the first {_PANELS} of {len(panels)} settings)" if len(panels) > _PANELS else ""
    across = min(len(drawn), 2)
    down = -(-len(drawn) // across)
    # A $ in the text of an experiment must not become a formula, and equal data must give equal files.
    settings = {"text.parse_math": False, "svg.hashsalt": "embinit", "svg.fonttype": "none", "font.size": 10}
    with matplotlib.rc_context(settings):
        size = (6.8 if across == 1 else 8.4, 4.2 if down == 1 else 1.2 + 2.6 * down)
        figure, grid = pyplot.subplots(
            down, across, figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False
        )
        cells = [axes for row in grid for axes in row]
        legend: dict[str, Any] = {}
        for axes, (name, draw) in zip(cells, drawn, strict=False):
            draw(axes)
            if name:
                axes.set_title(name, loc="left", fontsize=10)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="y", color="#e6e3dc", linewidth=0.7)
            axes.set_axisbelow(True)
            handles, labels_of_lines = axes.get_legend_handles_labels()
            # Lines with intervals come before the marks behind them.
            entries = sorted(
                zip(labels_of_lines, handles, strict=True),
                key=lambda entry: not isinstance(entry[1], ErrorbarContainer),
            )
            legend = dict(entries) | legend
        for place, axes in enumerate(cells):
            axes.set_visible(place < len(drawn))
            if place + across >= len(drawn):
                axes.set_xlabel("\n".join(textwrap.fill(line, 72 // across) for line in labels[0].split("\n")))
                axes.tick_params(labelbottom=True)
            if place % across == 0:
                axes.set_ylabel(labels[1])
        figure.suptitle(title + left, x=0.01, ha="left", fontsize=11)
        figure.legend(
            legend.values(), legend.keys(), loc="outside lower center", ncol=_columns(legend, size[0]), frameon=False,
            fontsize=9,
        )  # fmt: skip
        buffer = io.BytesIO()
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
        figure.savefig(buffer, format=form, dpi=160, metadata=undated)
        pyplot.close(figure)
    with replacing(path) as out:
        out.write(buffer.getvalue())
