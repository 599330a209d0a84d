"""A figure with the histograms of a matrix, of Xavier's initialization and of the positions."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from embinit.diagnosis.absorption import position_table
from embinit.diagnosis.diagnose import Diagnosis
from embinit.errors import EmbinitError, require
from embinit.files import replacing
from embinit.seeds import stream

_FORMATS = ("png", "svg", "pdf")
_NUMBERS = 500_000


def plot(diagnosis: Diagnosis, path: Path) -> None:
    """Write a figure of the numbers that the model adds: scaled rows, Xavier's rows of this size, and positions."""
    image_format = path.suffix.lstrip(".").lower()
    if image_format not in _FORMATS:
        raise EmbinitError(f"cannot draw {path.name}: the name must end in .{', .'.join(_FORMATS)}")
    matplotlib = require("matplotlib", "plot", "a figure")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    _draw(axes, diagnosis)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=image_format, dpi=150)
    pyplot.close(figure)
    with replacing(path) as out:
        out.write(buffer.getvalue())


def _draw(axes: Any, diagnosis: Diagnosis) -> None:
    rng = stream(0, "plot")
    factor = diagnosis.multiplier
    values = diagnosis.matrix.ravel()
    rows = rng.choice(values, _NUMBERS) if values.size > _NUMBERS else values
    bound = diagnosis.xavier.max
    scaling = "× √D" if diagnosis.host.scaled else "not scaled"
    layers = [
        (
            f"{Path(diagnosis.source).name}, {diagnosis.recipe.name} (σ {diagnosis.found.std * factor:.3g})",
            rows * factor,
        ),
        (f"Xavier (σ {diagnosis.xavier.std * factor:.2g})", rng.uniform(-bound, bound, 100_000) * factor),
    ]
    if diagnosis.host.adds_positions:
        table = position_table(diagnosis.host, diagnosis.dim)
        layers.append((f"{diagnosis.host.positions} positions (rms {diagnosis.host.position_rms:.2g})", table.ravel()))
    # The same axis must show σ 0.3 and σ 300, so it is linear near zero and logarithmic beyond.
    linear = min(float(np.std(layer)) for _, layer in layers)
    edge = max(float(np.abs(layer).max()) for _, layer in layers)
    grid = np.linspace(-np.arcsinh(edge / linear), np.arcsinh(edge / linear), 97)
    edges = np.sinh(grid) * linear
    for color, (name, layer) in zip(("#1f6fb4", "#d8731c", "#4d9a4d"), layers, strict=False):
        share = np.histogram(layer, edges)[0] / layer.size
        axes.stairs(100 * share, grid, fill=True, alpha=0.35, color=color, label=name)
        axes.stairs(100 * share, grid, color=color, linewidth=1.2)
    ticks = _tick_values(edge, linear)
    axes.set_xticks(np.arcsinh(np.array(ticks) / linear), [f"{tick:g}" for tick in ticks])
    axes.set_xlabel(f"value ({scaling}; axis and bins are logarithmic away from zero)")
    axes.set_ylabel("share of numbers in a bin, %")
    axes.set_title(f"Rows and positions, as the model ({diagnosis.host.name}) adds them", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", fontsize=8)


def _tick_values(edge: float, linear: float) -> list[float]:
    first = 10.0 ** np.floor(np.log10(linear))
    powers = [first * 10.0**i for i in range(int(np.ceil(np.log10(edge / first))) + 1)]
    shown = [power for power in powers if linear <= power <= edge]
    return [-power for power in reversed(shown)] + [0.0] + shown
