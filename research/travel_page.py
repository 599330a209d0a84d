"""The page on the rate of pre-trained rows: results/travel_rule.md and its picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embinit.errors import require
from embinit.files import replacing
from embinit.format import NONE, compact, fixed, interval, plural, signed
from embinit.reports.model import Table, TableCell
from embinit.reports.results_reader import ResultsFile
from embinit.reports.writers.figures import COLORS
from embinit.reports.writers.markdown import table, text
from embinit.statistics import Clustered
from research import power, rates
from research.travel import (
    ENOUGH,
    RULES,
    STANDARDIZED,
    JudgedRule,
    Length,
    Regret,
    judge,
    lengths,
    regret_of_random,
    standardized,
)

TITLE = "# How fast should pre-trained rows learn?"
EXPERIMENT = "travel"
FIGURE = "travel_rule.svg"
#: Largest number of lengths in a panel.
_LINES = 6


def page(files: Sequence[ResultsFile]) -> list[str]:
    """Return the lines of the page; none if the results do not contain the experiment."""
    experiment = next((file for file in files if file.experiment.name == EXPERIMENT), None)
    if experiment is None:
        return []
    trainings, other_epochs = lengths(experiment), lengths(experiment, "other")
    long_enough = standardized(trainings)
    verdicts = [judge(rule, long_enough) for rule in RULES]
    lines = [TITLE, "", f"**{text(_answer(verdicts, long_enough))}**", ""]
    lines += [f"![Score against the rate of the source's rows](figures/{FIGURE})", ""]
    lines += ["## Candidate rules", "", table(_candidates(verdicts, long_enough)), ""]
    lines += [f"- {text(line)}" for line in _reading(long_enough)] + [""]
    others = standardized(other_epochs)
    lines += [
        "The same when the other criterion chooses the epoch (lowest loss for classifiers, highest BLEU for translators):",
        "",
    ]
    lines += [table(_candidates([judge(rule, others) for rule in RULES], others)), ""]
    short = standardized(trainings, finished=False)
    lines += [f"Shorter trainings, below {ENOUGH} times what random rows need:", ""]
    lines += [table(_candidates([judge(rule, short) for rule in RULES], short)), ""]
    lines += ["## Best rate by length of training", "", table(_best(long_enough + short)), ""]
    lines += ["## Larger and smaller rows", "", table(_sizes(trainings)), ""]
    lines += ["## Standardized rows at a tenth of the rate, in all results", ""]
    for mechanism, about in rates.MECHANISMS.items():
        settings = [setting for setting in rates.rate_settings(files) if setting.mechanism == mechanism]
        lines += [f"{text(about.capitalize())} (`training.{mechanism}`):", "", table(_differences(settings)), ""]
    lines += [f"- {text(line)}" for line in _POOLING] + [""]
    lines += [
        "## Power of the registered test",
        "",
        table(_power()),
        "",
        text(_equal()),
        "",
        table(_designs()),
        "",
    ]
    return lines


_POOLING = (
    "Ours minus the comparator, in BLEU or points of accuracy; paired by seed; blocks of one data set weigh the same.",
    "Intervals are clustered by seed: blocks of one data set share its evaluation examples, and at one seed the order of "
    "the data and the other weights. MNLI's four blocks are four sources on one data set and not four replications.",
    "σ is that of one block's difference between seeds, pooled over the blocks.",
)


def _answer(verdicts: Sequence[JudgedRule], trainings: Sequence[Length]) -> str:
    travels = [length.travel(length.best) for length in trainings]
    best = min(verdicts, key=lambda judged: (judged.left_out.mean, judged.left_out.worst))
    return (
        f"No single travel is best: at the best rates, rows can move {compact(min(travels))} to {compact(max(travels))} "
        f"times their σ. On data sets left out of the fit, “{best.rule.name}” has the lowest mean regret: "
        f"{fixed(best.left_out.mean, 2)} BLEU or points, {fixed(best.left_out.worst, 2)} in the worst case."
    )


def _candidates(verdicts: Sequence[JudgedRule], trainings: Sequence[Length]) -> Table:
    names = list(dict.fromkeys(length.data for length in trainings))
    header = (
        "rate of the source's rows", "constant", "mean regret", "worst", "left out: mean", "left out: worst",
        *(f"on {name}" for name in names),
    )  # fmt: skip
    rows = [_verdict(judged, names) for judged in verdicts]
    random = regret_of_random(trainings)
    rows.append(
        _row(
            "random rows, full rate",
            NONE,
            random,
            random,
            {name: regret_of_random([length for length in trainings if length.data == name]) for name in names},
            names,
        )
    )
    return Table("Candidates", header, tuple(rows))


def _verdict(judged: JudgedRule, names: Sequence[str]) -> tuple[TableCell, ...]:
    constants = list(dict.fromkeys(compact(value) for _, value in sorted(judged.constants.items(), reverse=True)))
    return _row(judged.rule.name, " / ".join(constants), judged.fitted, judged.left_out, dict(judged.by_data), names)


def _row(
    name: str, constants: str, fitted: Regret, left_out: Regret, by_data: dict[str, Regret], names: Sequence[str]
) -> tuple[TableCell, ...]:
    numbers = [
        fitted.mean,
        fitted.worst,
        left_out.mean,
        left_out.worst,
        *(by_data[data].mean for data in names),
    ]
    return (TableCell(name), TableCell(constants), *(TableCell(fixed(number, 2)) for number in numbers))


def _reading(trainings: Sequence[Length]) -> list[str]:
    data = len({length.data for length in trainings})
    return [
        f"{plural(len(trainings), 'training')} of standardized rows on {data} data sets: every block of open/travel.toml at "
        f"every length of at least {ENOUGH} times the epochs after which random rows are best. Scores are on the validation "
        "split, of the epoch that embinit keeps.",
        f"They are prefixes of the runs of {plural(len({length.block for length in trainings}), 'block')} and overlap, "
        "so they are not independent replications.",
        "Regret is the distance to the best of random rows and of all rates, in BLEU or points. The mean is taken over "
        "the lengths of a data set, then over data sets.",
        "Constants have the lowest worst regret. Left out: the constants come from the other data sets. Multi30k is the "
        "only translation among them, so a constant for each kind of task is a classifier's when Multi30k is left out.",
        "The tenth was chosen on MNLI and SST-2 in earlier experiments, so only Multi30k and MRPC test it. The best "
        "formulas differ by less than the noise of four data sets, so the simplest one is used.",
        "MRPC decides little: random rows are hardly better than the share of its larger class.",
    ]


def _best(trainings: Sequence[Length]) -> Table:
    by_block: dict[str, list[Length]] = {}
    for length in trainings:
        by_block.setdefault(length.block, []).append(length)
    epochs = sorted({length.epochs for length in trainings})
    rows = []
    for block, of_block in by_block.items():
        by_epochs = {length.epochs: length for length in of_block}
        rows.append((TableCell(block), *(_best_cell(by_epochs.get(count)) for count in epochs)))
    return Table(
        "Best rates", ("block: best rate (travel in σ)", *(f"{count} epochs" for count in epochs)), tuple(rows)
    )


def _best_cell(length: Length | None) -> TableCell:
    if length is None:
        return TableCell("")
    return TableCell(f"{compact(length.best)} ({compact(length.travel(length.best))})", strong=length.finished)


def _sizes(trainings: Sequence[Length]) -> Table:
    longest: dict[tuple[str, str], Length] = {}
    for length in trainings:
        longest[length.block, length.recipe] = length
    header = (
        "block, whole training",
        "rows",
        "σ",
        "best rate",
        "travel in σ",
        "score",
        "at a tenth",
        "at the full rate",
        "random rows",
    )
    rows = tuple(_size_row(length) for length in longest.values())
    return Table("Sizes", header, rows, words=2)


def _size_row(length: Length) -> tuple[TableCell, ...]:
    texts = (
        length.block,
        "standardized" if length.recipe == STANDARDIZED else length.recipe,
        compact(length.std),
        compact(length.best),
        compact(length.travel(length.best)),
        *(
            fixed(score, 1)
            for score in (length.scores[length.best], length.score(0.1), length.score(1.0), length.random)
        ),
    )
    return tuple(TableCell(cell) for cell in texts)


def _differences(settings: Sequence[rates.RateSetting]) -> Table:
    header = ("against", "data set", "blocks", "seeds", "difference", "95 %", "σ between seeds")
    rows = []
    for comparator in rates.COMPARATORS:
        stds = rates.seed_std(settings, comparator)
        for place, (data, difference) in enumerate(rates.pooled(settings, comparator).items()):
            rows.append(
                (
                    TableCell("" if place else comparator),
                    TableCell(data),
                    *_pooled(difference),
                    TableCell(fixed(stds[data], 2)),
                )
            )
    return Table("Differences", header, tuple(rows), words=2)


def _pooled(difference: Clustered) -> tuple[TableCell, ...]:
    return (
        TableCell(str(difference.blocks)),
        TableCell(str(difference.n)),
        TableCell(signed(difference.mean, 2)),
        TableCell(interval(difference.low, difference.high, 2, sign=True)),
    )


def _power() -> Table:
    designs = power.designs()
    effects = designs[0].effects
    rows = []
    for design in (*designs, power.together(designs)):
        powers = power.powers(design)
        error = fixed(power.standard_error(design), 2)
        for place, (error_text, criterion) in enumerate(
            (
                (error, "a gain"),
                ("", f"no loss over {design.margin}"),
                ("", "both, against standardized rows half as much"),
            )
        ):
            cells = (TableCell(fixed(100 * powers[effect][place], 0)) for effect in effects)
            rows.append((TableCell("" if place else design.name), TableCell(criterion), TableCell(error_text), *cells))
    return Table(
        "Power",
        ("power, %", "to show", "standard error", *(f"if {effect:+.2f}" for effect in effects)),
        tuple(rows),
        words=2,
    )


def _equal() -> str:
    """Return a sentence on the power if the rule and standardized rows at the full rate are equally good."""
    share = fixed(100 * power.power_of_both(power.designs()[0], 1.0, 0.0), 0)
    return (
        "Both criteria must hold. If the rule and standardized rows at the full rate are equally good, both hold on the "
        f"data sets kept aside in {share} % of the tests, even with a gain of one point over random rows, because an "
        "interval of this width seldom excludes a loss of 0.3."
    )


def _designs() -> Table:
    rows = tuple(
        (
            TableCell(data_set.name),
            TableCell(data_set.source),
            TableCell(str(data_set.blocks)),
            TableCell(str(data_set.seeds)),
            TableCell(fixed(data_set.std, 1)),
        )
        for data_set in power.sets_of(power.designs())
    )
    return Table("Designs", ("data set", "σ from", "blocks", "seeds", "σ"), rows, words=2)


def figure(files: Sequence[ResultsFile], path: Path) -> list[Path]:
    """Draw the score against the rate, with a panel for each block and a line for each length; return the file."""
    experiment = next((file for file in files if file.experiment.name == EXPERIMENT), None)
    if experiment is None:
        return []
    by_block: dict[str, list[Length]] = {}
    for length in lengths(experiment):
        if length.recipe == STANDARDIZED and length.data != "mrpc":
            by_block.setdefault(length.block, []).append(length)
    matplotlib = require("matplotlib", "plot", "a picture")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    style = {"text.parse_math": False, "svg.hashsalt": "embinit", "svg.fonttype": "none", "font.size": 10}
    with matplotlib.rc_context(style):
        drawing, grid = pyplot.subplots(
            -(-len(by_block) // 2), 2, figsize=(8.4, 9.6), layout="constrained", squeeze=False
        )
        panels = [axes for line in grid for axes in line]
        for axes in panels[len(by_block) :]:
            axes.set_visible(False)
        for axes, (block, of_block) in zip(panels, by_block.items(), strict=False):
            _draw_panel(axes, block, of_block)
        buffer = io.BytesIO()
        drawing.savefig(buffer, format="svg", metadata={"Date": None})
        pyplot.close(drawing)
    with replacing(path) as out:
        out.write(buffer.getvalue())
    return [path]


def _drawn_lengths(of_block: Sequence[Length]) -> list[Length]:
    """Return the longest lengths of at least 4 epochs; of successive lengths with equal scores, the first."""
    kept: list[Length] = []
    for length in of_block:
        if length.epochs >= 4 and (not kept or length.scores != kept[-1].scores):
            kept.append(length)
    return kept[-_LINES:]


def _draw_panel(axes: Any, block: str, of_block: Sequence[Length]) -> None:
    for color, length in zip(COLORS[1:], _drawn_lengths(of_block), strict=False):
        places = sorted(length.scores)
        axes.plot(
            places, [length.scores[place] for place in places], marker="o", markersize=4, color=color,
            linestyle="-" if length.finished else ":", label=f"{length.epochs} epochs",
        )  # fmt: skip
    axes.axhline(of_block[-1].random, color=COLORS[0], linewidth=1, linestyle="--", label="random rows")
    axes.set_xscale("log")
    axes.set_xticks([0.03, 0.1, 0.3, 1, 3], ["0.03", "0.1", "0.3", "1", "3"])
    axes.minorticks_off()
    axes.set_title(block, loc="left", fontsize=10)
    axes.set_ylabel("BLEU" if of_block[0].translation else "accuracy, %")
    axes.set_xlabel("rate of the source's rows")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="lower right" if of_block[0].translation else "best")
