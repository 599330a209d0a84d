"""A figure with the histograms of a matrix, of Xavier's initialization and of the positions."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from embinit.diagnosis.diagnose import Diagnosis
from embinit.diagnosis.panel import histogram_of
from embinit.display import HISTOGRAM_COLORS
from embinit.errors import EmbinitError, require
from embinit.files import replacing

_FORMATS = ("png", "svg", "pdf")


def plot(diagnosis: Diagnosis, path: Path) -> None:
    """Write a figure of the numbers that the model adds: scaled rows, Xavier's rows of this size, and positions."""
    image_format = path.suffix.lstrip(".").lower()
    if image_format not in _FORMATS:
        raise EmbinitError(f"cannot draw {path.name}; the name must end in .{', .'.join(_FORMATS)}")
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
    chart = histogram_of(diagnosis)
    assert chart is not None  # `diagnose` refuses rows whose numbers are all equal
    for color, (name, shares) in zip(HISTOGRAM_COLORS, chart.layers, strict=False):
        percents = 100 * np.array(shares)
        axes.stairs(percents, chart.grid, fill=True, alpha=0.35, color=color, label=name)
        axes.stairs(percents, chart.grid, color=color, linewidth=1.2)
    axes.set_xticks([position for position, _ in chart.ticks], [label for _, label in chart.ticks])
    scaling = "× √D" if diagnosis.host.scaled else "not scaled"
    axes.set_xlabel(f"value ({scaling}; axis and bins are logarithmic away from zero)")
    axes.set_ylabel("share of numbers in a bin, %")
    axes.set_title(
        f"{Path(diagnosis.source).name} and positions, as the model ({diagnosis.host.name}) adds them", loc="left"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", fontsize=8)
