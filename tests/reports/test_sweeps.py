"""Sweeps: which number a score is drawn against, where it is best, and what is as good within noise."""

from __future__ import annotations

from dataclasses import replace

from embinit.experiments.experiment import Block, Planned
from embinit.experiments.runs.result import Result
from embinit.reports.analysis.sweeps import best_places
from embinit.reports.model import Part, Summary
from embinit.reports.summarize import summarize
from embinit.reports.verdicts import SweepDifference, SweepOptima, SweepOptimum
from tests.reports import made


def report(block: Block, results: dict[str, Result], **fields: object) -> Summary:
    return summarize(made.experiment(block, **fields), results)


def optima(part: Part) -> tuple[SweepOptimum, ...]:
    """Return the best places of a part's lines."""
    found = part.answer.verdicts[0]
    assert isinstance(found, SweepOptima)
    return found.optima


def test_a_sweep_over_a_number_is_drawn_against_it() -> None:
    block, found = made.sweep_of("ratio", {"0.1": 36, "9": 29, "0.4": 38, "0.8": 37.9})
    summary = report(block, found)
    sweep = summary.parts[0].sweep
    assert sweep is not None
    assert sweep.logarithmic
    assert sweep.axis.startswith("σ of the rows")
    (line,) = sweep.lines.values()
    assert [point.x for point in line] == [0.1, 0.4, 0.8, 9]
    best = optima(summary.parts[0])[0]
    assert (best.x, best.low, best.high) == (0.4, 0.4, 0.8)


def test_a_sweep_of_losses_is_best_where_they_are_lowest() -> None:
    block, results = made.sweep_of("ratio", {"0.1": 3.6, "9": 4.9, "0.4": 2.0, "0.8": 2.0})
    losses = {
        key: replace(result, scores={"test": {"valid loss": result.scores["test"]["bleu"]}})
        for key, result in results.items()
    }
    best = optima(report(replace(block, score="valid loss"), losses).parts[0])[0]
    assert (best.low, best.high) == (0.4, 0.8)


def test_a_sweep_over_recipes_takes_the_number_that_they_give() -> None:
    names = {
        f"{start} | scale ratio={ratio}": 30.0 + i
        for start in ("normal", "pretrained")
        for i, ratio in enumerate((0.1, 1))
    }
    block, found = made.sweep_of("recipe", names)
    sweep = report(block, found).parts[0].sweep
    assert sweep is not None
    assert {name: [point.x for point in line] for name, line in sweep.lines.items()} == {
        "normal | scale": [0.1, 1.0],
        "pretrained | scale": [0.1, 1.0],
    }


def test_a_sweep_over_named_recipes_takes_the_ratio_that_was_measured() -> None:
    block, found = made.sweep_of("recipe", {"xavier": 37.0, "pretrained": 30.0})
    sweep = report(block, found).parts[0].sweep
    assert sweep is not None
    assert {name: round(line[0].x, 3) for name, line in sweep.lines.items()} == {"xavier": 0.385, "pretrained": 9.259}


def test_rows_of_the_output_layer_have_no_ratio_to_the_positions() -> None:
    block, found = made.sweep_of("recipe", {"xavier": 37.0, "pretrained": 30.0})
    facts = made.matrix("xavier")
    found = {
        key: replace(result, matrices={**result.matrices, "output": {**facts, "std": 99.0}})
        for key, result in found.items()
    }
    part = report(block, found).parts[0]
    assert part.sweep is not None
    assert {name: round(line[0].x, 3) for name, line in part.sweep.lines.items()} == {
        "xavier": 0.385,
        "pretrained": 9.259,
    }
    assert {shape.side: shape.ratio is None for shape in part.shapes} == {
        "source": False,
        "target": False,
        "output": True,
    }


def test_a_sweep_of_two_names_has_colours_for_one_and_dashes_for_the_other() -> None:
    runs, found = [], {}
    for positions in ("sinusoidal", "rotary", "none"):
        for recipe, lift in (("random", 0.0), ("meaning", 1.0)):
            for ratio in ("0.1", "1"):
                for seed in range(6):
                    spec = made.spec(f"{recipe} {ratio}", seed, positions=positions)
                    runs.append(Planned(spec, (("model.positions", positions), ("recipe", recipe), ("ratio", ratio))))
                    gain = lift if ratio == "0.1" else 0.0
                    found[spec.key] = made.result(spec, 30 + gain + made.noise(f"{recipe}{ratio}{positions}", seed))
    block = Block("positions", tuple(runs), "bleu", "test", sweep="ratio")
    summary = report(block, found, baseline="random")
    sweep = summary.parts[0].sweep
    assert sweep is not None
    assert sweep.looks == {
        "sinusoidal positions · random": (1, 0),
        "sinusoidal positions · meaning": (1, 1),
        "rotary positions · random": (2, 0),
        "rotary positions · meaning": (2, 1),
        "no positions · random": (3, 0),
        "no positions · meaning": (3, 1),
    }
    assert summary.parts[0].answer.verdicts[-1] == SweepDifference(
        "sinusoidal positions · meaning", "better", "random", (0.1,)
    )
    assert sweep.words["no positions · meaning"] == ("no positions", "meaning")
    assert summary.recipes["meaning"] == "meaning 0.1, meaning 1"
    assert len(summary.parts[0].shapes) == 3 * 2 * 2 * 2


def test_a_sweep_over_tasks_is_drawn_against_their_rows_and_says_what_has_none() -> None:
    runs, found = [], {}
    for name, rows in (("m 1k", 1000), ("m 3k", None), ("all", None)):
        for seed in range(3):
            spec = made.spec("xavier", seed)
            spec = replace(spec, task=replace(spec.task, rows=rows, pair=name))
            runs.append(Planned(spec, (("task", name),)))
            found[spec.key] = made.result(spec, 30 + made.noise(name, seed))
    (part,) = report(Block("sizes", tuple(runs), "bleu", "test", sweep="task"), found).parts
    assert part.sweep is not None
    assert [point.x for line in part.sweep.lines.values() for point in line] == [1000, 3000]
    assert part.notes == ("Not in the chart, because they have no number for the axis: all.",)


def test_a_sweep_over_words_is_a_table_alone() -> None:
    runs = tuple(Planned(made.spec("xavier", 0, norm=norm), (("model.norm", norm),)) for norm in ("pre", "post"))
    block = Block("norms", runs, "bleu", "test", sweep="model.norm")
    assert report(block, made.results(block)).parts[0].sweep is None


# ---------------------------------------------------------------- what they say


def several(best: dict[str, str]) -> list[Part]:
    """Return a sweep for each name, best at a place of its own."""
    parts = []
    for name, place in best.items():
        block, found = made.sweep_of("ratio", {x: 38.0 if x == place else 30.0 for x in ("0.1", "1", "10")})
        parts += report(replace(block, name=name), found).parts
    return parts


def test_sweeps_that_are_best_at_one_place_are_one_sentence() -> None:
    found = best_places(several(dict.fromkeys("abcdef", "0.1")))
    assert [(one.block, one.x) for one in found.optima] == [(name, 0.1) for name in "abcdef"]


def test_sweeps_that_are_best_at_different_places_are_named() -> None:
    found = best_places(several({"other": "10", "a": "0.1"}))
    assert [(one.block, one.x, one.line) for one in found.optima] == [("other", 10.0, "other"), ("a", 0.1, "a")]


def test_noise_is_that_of_all_places() -> None:
    # Two seeds that agree by chance tell a place from its neighbour no better: the others say how much seeds vary.
    runs, found = [], {}
    for place, scores in {"0.1": (38.0, 36.0), "1": (36.9, 36.9), "10": (30.0, 32.0), "30": (24.0, 26.0)}.items():
        for seed, score in enumerate(scores):
            spec = made.spec(f"normal std={place}", seed)
            runs.append(Planned(spec, (("ratio", place),)))
            found[spec.key] = made.result(spec, score)
    (part,) = report(Block("few", tuple(runs), "bleu", "test", sweep="ratio"), found).parts
    (best,) = optima(part)
    assert (best.line, best.x, best.mean, best.low, best.high) == ("few", 0.1, 37.0, 0.1, 1.0)
    assert part.sweep is not None
    widths = {round(point.high - point.low, 9) for point in part.sweep.lines["few"] if point.high and point.low}
    assert len(widths) == 1
