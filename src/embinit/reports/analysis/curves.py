"""Histories over epochs, and scores against a swept number."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import zip_longest

from embinit.experiments.experiment import Block
from embinit.experiments.runs.result import Result
from embinit.experiments.spec import OUTPUT, Spec
from embinit.models.architecture import ADDED
from embinit.positions import SINUSOIDAL_RMS
from embinit.reports import metrics
from embinit.reports.analysis.published import is_recipe
from embinit.reports.analysis.rows import Results, finished, grouped, varied_axes
from embinit.reports.model import Curve, Sweep, SweepPoint
from embinit.reports.scores import TableRow
from embinit.statistics import pooled

#: The first histories, in this order; the others follow.
_FIRST = ("bleu", "accuracy", "valid loss", "train loss")
#: The number in a recipe: `scale ratio=0.4`, `normal std=0.02`.
NUMBER = re.compile(r"(\w+)=([0-9.]+(?:[eE][-+]?[0-9]+)?)")
#: Added positions with a fixed root mean square; that of learned positions changes.
_KNOWN_RMS = tuple(name for name in ADDED if name != "learned")


def curves(block: Block, rows: Sequence[TableRow], results: Results) -> dict[str, tuple[Curve, ...]]:
    """Return the curves of each history, one for each table row: the mean over seeds, and mean ± σ."""
    runs_of = grouped(block)
    done = [finished(runs_of[row.axes], results) for row in rows]
    recorded = {name: None for runs in done for result in runs for record in result.history for name in record}
    # Scores first, then the histories of the embeddings, kind by kind.
    names = [*(name for name in _FIRST if name in recorded), *sorted(name for name in recorded if name not in _FIRST)]
    return {
        metrics.history(name): tuple(
            _curve(row, [[record.get(name) for record in result.history] for result in runs], _factor(name))
            for row, runs in zip(rows, done, strict=True)
            if any(record.get(name) is not None for result in runs for record in result.history)
        )
        for name in names
    }


def _factor(name: str) -> float:
    return metrics.metric(name, "").factor


def _curve(row: TableRow, histories: list[list[float | None]], factor: float) -> Curve:
    epochs: list[int] = []
    means: list[float] = []
    lows: list[float | None] = []
    highs: list[float | None] = []
    for epoch, there in enumerate(zip_longest(*histories), 1):
        values = [factor * value for value in there if value is not None and math.isfinite(value)]
        if not values:
            continue  # the epoch was not decoded, so the line skips it
        mean, spread = sum(values) / len(values), _deviation(values)
        epochs.append(epoch)
        means.append(mean)
        lows.append(None if spread is None else mean - spread)
        highs.append(None if spread is None else mean + spread)
    return Curve(row.series, row.label, tuple(epochs), tuple(means), tuple(lows), tuple(highs), len(histories))


def _deviation(values: list[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def sweep(block: Block, rows: Sequence[TableRow], results: Results, baseline: str) -> Sweep | None:
    """Return the score against the swept axis; None if the block has no such axis, or if its values are no numbers.

    For recipes, the number is the parameter that all of them give (`ratio=0.4`). Without one it is the ratio measured in
    the last embedding of each run (the decoder's): σ as the model adds it, over the positions' rms. For tasks, it is the
    number of training examples, as set or as in the task's name (`multi30k 29k`).
    """
    if not block.sweep:
        return None
    runs_of = grouped(block)
    values = [dict(row.axes).get(block.sweep, "") for row in rows]
    plain = [_float(value) for value in values]
    parameters = [NUMBER.findall(value) for value in values]
    names = {numbers[-1][0] if numbers else "" for numbers in parameters}
    if all(x is not None for x in plain):
        axis, xs, lines = block.sweep.rpartition(".")[2], plain, [""] * len(rows)
    elif block.sweep == "task":
        axis, lines = "rows", [""] * len(rows)
        xs = [_size(runs_of[row.axes][0].spec, value) for row, value in zip(rows, values, strict=True)]
    elif not is_recipe(block.sweep):
        return None
    elif len(names) == 1 and "" not in names:
        axis = names.pop()
        xs = [float(numbers[-1][1]) for numbers in parameters]
        lines = [NUMBER.sub("", value).strip() for value in values]
    else:
        axis = "ratio"
        xs = [_measured(finished(runs_of[row.axes], results)) for row in rows]
        lines = [NUMBER.sub("", value).strip() for value in values]
    return _sweep(block, rows, axis, xs, lines, baseline)


def _sweep(
    block: Block, rows: Sequence[TableRow], axis: str, xs: list[float | None], lines: list[str], baseline: str
) -> Sweep:
    lines_by_words: dict[tuple[str, ...], list[SweepPoint]] = {}
    varied = [name for name in varied_axes(block) if name != block.sweep]
    there = [entry for entry in zip(rows, xs, lines, strict=True) if entry[0].scores]
    # A sweep has many places with few seeds each, so σ is pooled over all of them.
    for (row, x, line), interval in zip(there, pooled([list(row.scores.values()) for row, _, _ in there]), strict=True):
        if x is None:
            continue
        others = [metrics.setting(name, value) for name, value in row.axes if name in varied]
        parts = tuple(text for text in (line, *others) if text) or (block.name,)
        lines_by_words.setdefault(parts, []).append(SweepPoint(**vars(interval), x=x, label=row.label))
    places = [point.x for line in lines_by_words.values() for point in line]
    return Sweep(
        name=_TITLES.get(axis, axis),
        axis=_AXES.get(axis, axis),
        logarithmic=bool(places) and min(places) > 0 and max(places) / min(places) >= 10,
        lines={
            metrics.SEPARATOR.join(parts): tuple(sorted(line, key=lambda point: point.x))
            for parts, line in lines_by_words.items()
        },
        words={metrics.SEPARATOR.join(parts): parts for parts in lines_by_words},
        looks=_looks(list(lines_by_words), baseline),
    )


def _looks(lines: list[tuple[str, ...]], baseline: str) -> dict[str, tuple[int, int]]:
    """Return the colour and the dashes of each line: colours for the word with most values, dashes for the other words."""
    width = min((len(parts) for parts in lines), default=0)
    most = max(range(width), key=lambda place: len({parts[place] for parts in lines}), default=0)
    colored = list(dict.fromkeys(parts[most] for parts in lines if parts[most] != baseline))
    rests = list(dict.fromkeys(parts[:most] + parts[most + 1 :] for parts in lines))
    return {
        metrics.SEPARATOR.join(parts): (
            0 if parts[most] == baseline else 1 + colored.index(parts[most]) % 7,
            rests.index(parts[:most] + parts[most + 1 :]),
        )
        for parts in lines
    }


_SIZE = re.compile(r"([0-9.]+)(k?)$")


def _size(spec: Spec, name: str) -> float | None:
    if spec.task.rows is not None:
        return float(spec.task.rows)
    match = _SIZE.search(name)
    number = None if match is None else _float(match[1])
    return None if match is None or number is None else number * (1000 if match[2] else 1)


_TITLES = {"rows": "the number of training rows", "ratio": "scale", "std": "scale"}
#: The label of an axis of ratios.
RATIO = "σ of the rows as the model adds them, over the positions' rms"
_AXES = {
    "rows": "training rows",
    "ratio": RATIO,
    "std": "σ of the rows",
}


def _float(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _measured(done: list[Result]) -> float | None:
    for result in done:
        matrices = [matrix for side, matrix in result.matrices.items() if side != OUTPUT]
        if matrices:
            last = matrices[-1]
            return ratio(result, float(last["std"]), int(last["dim"]))
    return None


def ratio(result: Result, std: float, dim: int) -> float | None:
    """Return σ as the model adds it, over the rms of the positions; None if positions are learned or not added."""
    model = dict(result.spec.model)
    if model.get("positions", "sinusoidal") not in _KNOWN_RMS:
        return None
    return std * (math.sqrt(dim) if model.get("scaled", True) else 1.0) / SINUSOIDAL_RMS
