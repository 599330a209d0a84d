"""Pictures for documents: they are drawn, the same each time, whatever the labels."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from embinit.errors import EmbinitError
from embinit.reports.results_reader import read_compact
from embinit.reports.summarize import summarize
from embinit.reports.writers.axis_marks import AxisMark
from embinit.reports.writers.figures import COLORS, curves_figure, figures, names, remove_others, sweep_figure
from tests.reports import made
from tests.reports.test_page import contrast
from tests.reports.test_writers import hostile


def test_curves_and_sweeps_are_drawn_the_same_each_time(tmp_path: Path) -> None:
    block, other = made.block(), made.sweep_of("ratio", {"0.1": 36, "9": 29, "0.4": 38})
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


def test_a_curve_of_one_epoch_is_a_point(tmp_path: Path) -> None:
    block = made.block(seeds=range(3))
    found = {key: replace(one, history=one.history[:1]) for key, one in made.results(block).items()}
    (drawn,) = figures(summarize(made.experiment(block), found), tmp_path)
    (long,) = figures(summarize(made.experiment(block, name="long"), made.results(block)), tmp_path)
    points = [len(re.findall(r'<g clip-path="[^"]*">\s*<use', path.read_text())) for path in (drawn, long)]
    assert points[0] - points[1] == len(made.RECIPES)


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
        curves_figure(part, tmp_path / "x.jpeg", summary.colors)
    with pytest.raises(EmbinitError, match="did you mean 'validation loss'"):
        curves_figure(part, tmp_path / "x.svg", summary.colors, "valid loss")
    with pytest.raises(EmbinitError, match="sweeps nothing"):
        sweep_figure(part, tmp_path / "x.svg")


def test_no_two_lines_look_alike(tmp_path: Path) -> None:
    recipes = tuple(f"start_{letter}" for letter in "abcdefghi")
    block = made.block(recipes=recipes, seeds=range(2))
    summary = summarize(made.experiment(block), made.results(block))
    (path,) = figures(summary, tmp_path)
    text = path.read_text("utf-8")
    lines = re.findall(r'id="line2d_\d+">\s*<path[^>]*style="fill: none; (stroke[^"]*stroke-width: 1.8[^"]*)"', text)
    in_panel = lines[: len(recipes)]
    assert len(in_panel) == len(set(in_panel)) == len(recipes)


def test_colours_can_be_seen_on_white() -> None:
    assert all(contrast(color, "#ffffff") >= 3 for color in COLORS)


def test_settings_have_a_panel_each_and_names_once(tmp_path: Path) -> None:
    levels = {(norm, recipe): 37.0 for norm in ("pre", "post") for recipe in ("xavier", "pretrained")}
    block, found = made.crossed(levels, ("model.norm", "recipe"))
    (path,) = figures(summarize(made.experiment(block), found), tmp_path)
    text = path.read_text("utf-8")
    assert text.count('id="axes_') == 2
    assert text.count(">pretrained<") == 1
    assert ">pre-LN<" in text
    assert ">post-LN<" in text


def test_a_sweep_over_ratios_has_its_marks_and_every_place_on_the_axis(tmp_path: Path) -> None:
    block, found = made.sweep_of("ratio", {"0.03": 36, "9": 29, "0.385": 38})
    (part,) = summarize(made.experiment(block), found).parts
    sweep_figure(part, tmp_path / "x.svg", (AxisMark("Xavier's own", 0.38, 0.44), AxisMark("glove as it is", 9.2, 9.2)))
    text = (tmp_path / "x.svg").read_text("utf-8")
    assert ">Xavier's own<" in text
    assert ">glove as it is<" in text
    assert all(f">{place}<" in text for place in ("0.03", "0.385", "9"))
    layers, others = made.crossed({(x, "xavier"): 37.0 for x in "13"}, ("model.layers", "recipe"), sweep="model.layers")
    (deep,) = summarize(made.experiment(layers), others).parts
    sweep_figure(deep, tmp_path / "y.svg", (AxisMark("Xavier's own", 0.38, 0.44),))
    assert "Xavier" not in (tmp_path / "y.svg").read_text("utf-8")


def test_many_lines_of_a_sweep_are_shared_out(tmp_path: Path) -> None:
    kinds = ("sinusoidal", "rotary", "none")
    levels = {(p, x, r): 37.0 for p in kinds for x in ("0.1", "9") for r in ("xavier", "pretrained")}
    block, found = made.crossed(levels, ("model.positions", "ratio", "recipe"), sweep="ratio")
    (part,) = summarize(made.experiment(block), found).parts
    sweep_figure(part, tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text("utf-8")
    assert text.count('id="axes_') == 2
    assert text.count(">rotary positions<") == 1


def test_blocks_without_runs_of_their_own_have_no_picture() -> None:
    block, gone = made.block(), made.block("other", task="iwslt2017", missing="needs files")
    found = made.results(block)
    found |= {key: one for key, one in made.results(gone).items() if one.spec.sides[0][1].recipe == "xavier"}
    assert names(summarize(made.experiment(gone, block), found)) == {2: ("made-2-curves.svg",)}
    swept, scores = made.sweep_of("ratio", {"0.1": 36, "9": 29})
    (part,) = summarize(made.experiment(swept), scores).parts
    summary = summarize(made.experiment(swept), scores)
    assert names(summary) == {1: ("made-1-sweep.svg",)}
    assert names(replace(summary, parts=(replace(part, missing="needs files"),))) == {}


def test_pictures_that_no_longer_belong_are_removed_and_nothing_else(tmp_path: Path) -> None:
    stay = ("made-1-curves.svg", "notes.txt", "logo.svg", "made-1-curves.png", "made-curves.svg")
    for name in (*stay, "made-2-curves.svg", "old-13-sweep.svg"):
        (tmp_path / name).write_text("x")
    gone = remove_others(tmp_path, [tmp_path / "made-1-curves.svg"])
    assert [path.name for path in gone] == ["made-2-curves.svg", "old-13-sweep.svg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(stay)
    assert remove_others(tmp_path / "absent", []) == []


RESULTS = sorted((Path(__file__).parents[2] / "results").glob("*.results.json"))
STARTS = ("xavier", "pretrained", "pretrained_xavier", "pretrained_shuffled", "xavier_pretrained")


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_a_start_has_one_colour_in_every_report_and_no_two_have_the_same(path: Path) -> None:
    summary = read_compact(path).summary()
    colors = summary.colors
    assert {name: place for name, place in colors.items() if name in STARTS} == {
        name: STARTS.index(name) for name in colors if name in STARTS
    }
    assert len(set(colors.values())) == len(colors)
    if summary.baseline in colors:
        assert next(iter(colors)) == summary.baseline
        assert summary.baseline in STARTS or colors[summary.baseline] == 0
        assert all(place for name, place in colors.items() if name not in (summary.baseline, "xavier"))
