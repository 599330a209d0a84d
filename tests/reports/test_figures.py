"""Pictures for documents: they are drawn, the same each time, whatever the labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from embinit.errors import EmbinitError
from embinit.reports.figures import COLORS, curves_figure, figures, sweep_figure
from embinit.reports.summary import summarize
from tests.reports import made
from tests.reports.test_page import contrast
from tests.reports.test_summary import sweep_of
from tests.reports.test_writers import hostile


def test_curves_and_sweeps_are_drawn_the_same_each_time(tmp_path: Path) -> None:
    block, other = made.block(), sweep_of("ratio", {"0.1": 36, "9": 29, "0.4": 38})
    summary = summarize(made.experiment(block, other[0]), made.results(block) | other[1])
    written = figures(summary, tmp_path / "one")
    assert [path.name for path in written] == ["made-1-curves.svg", "made-2-sweep.svg"]
    again = figures(summary, tmp_path / "two")
    for first, second in zip(written, again, strict=True):
        assert first.read_bytes() == second.read_bytes()
    text = written[0].read_text("utf-8")
    assert all(recipe in text for recipe in made.RECIPES)
    assert all(color in text for color in COLORS[:4])
    assert "positions' rms" in written[1].read_text("utf-8")


def test_labels_are_no_formulas_and_no_markup(tmp_path: Path) -> None:
    (path,) = figures(hostile(), tmp_path)
    text = path.read_text("utf-8")
    assert "<script" not in text
    assert "alert(1)" in text
    (picture,) = figures(hostile(), tmp_path, "png")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    summary = summarize(made.experiment(made.block()), made.results(made.block()))
    (part,) = summary.parts
    with pytest.raises(EmbinitError, match=r"must end in one of \.svg"):
        curves_figure(part, tmp_path / "x.jpeg", summary.series)
    with pytest.raises(EmbinitError, match="did you mean 'validation loss'"):
        curves_figure(part, tmp_path / "x.svg", summary.series, "valid loss")
    with pytest.raises(EmbinitError, match="sweeps nothing"):
        sweep_figure(part, tmp_path / "x.svg")


def test_colours_can_be_seen_on_white() -> None:
    assert all(contrast(color, "#ffffff") >= 3 for color in COLORS)
