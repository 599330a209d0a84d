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
    Judged,
    Length,
    Verdict,
    cost_of_random,
    judge,
    lengths,
    standardized,
)

TITLE = "# How fast should pre-trained rows learn?"
EXPERIMENT = "travel"
FIGURE = "travel_rule.svg"
#: Lengths of training that a panel shows at the most.
_LINES = 6


def page(compacts: Sequence[ResultsFile]) -> list[str]:
    """Return the page, line by line; nothing where the experiment is not among the results."""
    experiment = next((one for one in compacts if one.experiment.name == EXPERIMENT), None)
    if experiment is None:
        return []
    found, other = lengths(experiment), lengths(experiment, "other")
    long_enough = standardized(found)
    verdicts = [judge(rule, long_enough) for rule in RULES]
    lines = [TITLE, "", f"**{text(_answer(verdicts, long_enough))}**", ""]
    lines += [f"![Score against the rate of the source's rows](figures/{FIGURE})", ""]
    lines += ["## Candidate rules", "", table(_candidates(verdicts, long_enough)), ""]
    lines += [f"- {text(line)}" for line in _reading(long_enough)] + [""]
    others = standardized(other)
    lines += [
        "The same when the other criterion chooses the epoch (lowest loss for classifiers, highest BLEU for translators):",
        "",
    ]
    lines += [table(_candidates([judge(rule, others) for rule in RULES], others)), ""]
    short = standardized(found, finished=False)
    lines += [f"Shorter trainings, below {ENOUGH} times what random rows need:", ""]
    lines += [table(_candidates([judge(rule, short) for rule in RULES], short)), ""]
    lines += ["## Best rate by length of training", "", table(_best(long_enough + short)), ""]
    lines += ["## Larger and smaller rows", "", table(_sizes(found)), ""]
    lines += ["## Standardized rows at a tenth of the rate, in all results", ""]
    for mechanism, about in rates.MECHANISMS.items():
        listed = [one for one in rates.fields(compacts) if one.mechanism == mechanism]
        lines += [f"{text(about.capitalize())} (`training.{mechanism}`):", "", table(_differences(listed)), ""]
    lines += [f"- {text(line)}" for line in _POOLING] + [""]
    lines += ["## Power of the registered test", "", table(_power()), "", table(_designs()), ""]
    return lines


_POOLING = (
    "Ours minus the comparator, in BLEU or points of accuracy; paired by seed; blocks of one data set weigh the same.",
    "Intervals are clustered by seed: blocks of one data set share its evaluation examples, and at one seed the order of "
    "the data and the other weights. MNLI's four blocks are four sources on one data set and not four replications.",
    "σ is that of one block's difference between seeds, pooled over the blocks.",
)


def _answer(verdicts: Sequence[Verdict], found: Sequence[Length]) -> str:
    travels = [one.travel(one.best) for one in found]
    least = min(verdicts, key=lambda one: (one.left_out.mean, one.left_out.worst))
    return (
        f"There is no one travel: the rate that does best lets rows move {compact(min(travels))} to {compact(max(travels))} "
        f"times their σ. On data sets that did not make the rule, “{least.rule.name}” has the lowest mean regret: "
        f"{fixed(least.left_out.mean, 2)} BLEU or points below the best, {fixed(least.left_out.worst, 2)} at the worst."
    )


def _candidates(verdicts: Sequence[Verdict], found: Sequence[Length]) -> Table:
    names = list(dict.fromkeys(one.data for one in found))
    header = (
        "rate of the source's rows", "constant", "mean regret", "worst", "left out: mean", "left out: worst",
        *(f"on {name}" for name in names),
    )  # fmt: skip
    rows = [_verdict(one, names) for one in verdicts]
    random = cost_of_random(found)
    rows.append(
        _row(
            "random rows, full rate",
            NONE,
            random,
            random,
            {name: cost_of_random([one for one in found if one.data == name]) for name in names},
            names,
        )
    )
    return Table("Candidates", header, tuple(rows))


def _verdict(one: Verdict, names: Sequence[str]) -> tuple[TableCell, ...]:
    constants = list(dict.fromkeys(compact(value) for _, value in sorted(one.constants.items(), reverse=True)))
    return _row(one.rule.name, " / ".join(constants), one.fitted, one.left_out, dict(one.by_data), names)


def _row(
    name: str, constants: str, fitted: Judged, outside: Judged, by_data: dict[str, Judged], names: Sequence[str]
) -> tuple[TableCell, ...]:
    numbers = [fitted.mean, fitted.worst, outside.mean, outside.worst, *(by_data[one].mean for one in names)]
    return (TableCell(name), TableCell(constants), *(TableCell(fixed(number, 2)) for number in numbers))


def _reading(found: Sequence[Length]) -> list[str]:
    data = len({one.data for one in found})
    return [
        f"{plural(len(found), 'training')} of standardized rows on {data} data sets: every block of open/travel.toml at "
        f"every length of at least {ENOUGH} times the epochs after which random rows are best. Scores are on the validation "
        "split, of the epoch that embinit keeps.",
        "Regret is the distance to the best of random rows and of all rates, in BLEU or points. The mean is one over data "
        "sets of their means.",
        "Constants have the lowest worst regret. Left out: the constants come from the other data sets. Multi30k is the "
        "only translation among them, so a constant for each kind of task is a classifier's when Multi30k is left out.",
        "A tenth was not chosen here, but on MNLI and on SST-2 in earlier experiments, so only Multi30k and MRPC are "
        "new to it. The best formulas differ by less than the noise of four data sets; the simplest one is taken.",
        "MRPC decides little: random rows are hardly above its larger class.",
    ]


def _best(found: Sequence[Length]) -> Table:
    by_block: dict[str, list[Length]] = {}
    for one in found:
        by_block.setdefault(one.block, []).append(one)
    epochs = sorted({one.epochs for one in found})
    rows = []
    for block, listed in by_block.items():
        known = {one.epochs: one for one in listed}
        rows.append((TableCell(block), *(_best_cell(known.get(count)) for count in epochs)))
    return Table(
        "Best rates", ("block: best rate (travel in σ)", *(f"{count} epochs" for count in epochs)), tuple(rows)
    )


def _best_cell(one: Length | None) -> TableCell:
    if one is None:
        return TableCell("")
    return TableCell(f"{compact(one.best)} ({compact(one.travel(one.best))})", strong=one.finished)


def _sizes(found: Sequence[Length]) -> Table:
    last: dict[tuple[str, str], Length] = {}
    for one in found:
        last[one.block, one.recipe] = one
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
    rows = tuple(_size_row(one) for one in last.values())
    return Table("Sizes", header, rows, words=2)


def _size_row(one: Length) -> tuple[TableCell, ...]:
    texts = (
        one.block,
        "standardized" if one.recipe == STANDARDIZED else one.recipe,
        compact(one.std),
        compact(one.best),
        compact(one.travel(one.best)),
        *(fixed(score, 1) for score in (one.scores[one.best], one.score(0.1), one.score(1.0), one.random)),
    )
    return tuple(TableCell(text) for text in texts)


def _differences(found: Sequence[rates.RateSetting]) -> Table:
    header = ("against", "data set", "blocks", "seeds", "difference", "95 %", "σ between seeds")
    rows = []
    for comparator in rates.COMPARATORS:
        stds = rates.seed_std(found, comparator)
        for place, (data, one) in enumerate(rates.pooled(found, comparator).items()):
            rows.append(
                (
                    TableCell("" if place else comparator),
                    TableCell(data),
                    *_pooled(one),
                    TableCell(fixed(stds[data], 2)),
                )
            )
    return Table("Differences", header, tuple(rows), words=2)


def _pooled(one: Clustered) -> tuple[TableCell, ...]:
    return (
        TableCell(str(one.blocks)),
        TableCell(str(one.n)),
        TableCell(signed(one.mean, 2)),
        TableCell(interval(one.low, one.high, 2, sign=True)),
    )


def _power() -> Table:
    found = power.designs()
    effects = found[0].effects
    rows = []
    for design in found:
        reached = power.powers(design)
        error = fixed(power.standard_error(design), 2)
        rows.append(
            (
                TableCell(design.name),
                TableCell("a gain"),
                TableCell(error),
                *(TableCell(fixed(100 * reached[one][0], 0)) for one in effects),
            )
        )
        rows.append(
            (
                TableCell(""),
                TableCell(f"no loss over {design.margin}"),
                TableCell(""),
                *(TableCell(fixed(100 * reached[one][1], 0)) for one in effects),
            )
        )
    return Table(
        "Power", ("power, %", "to show", "standard error", *(f"if {one:+.2f}" for one in effects)), tuple(rows), words=2
    )


def _designs() -> Table:
    rows = tuple(
        (
            TableCell(one.name),
            TableCell(one.source),
            TableCell(str(one.blocks)),
            TableCell(str(one.seeds)),
            TableCell(fixed(one.std, 1)),
        )
        for one in power.sets_of(power.designs())
    )
    return Table("Designs", ("data set", "σ from", "blocks", "seeds", "σ"), rows, words=2)


def figure(compacts: Sequence[ResultsFile], path: Path) -> list[Path]:
    """Write the score against the rate, a panel a block and a line a length of training; return what was written."""
    experiment = next((one for one in compacts if one.experiment.name == EXPERIMENT), None)
    if experiment is None:
        return []
    by_block: dict[str, list[Length]] = {}
    for one in lengths(experiment):
        if one.recipe == STANDARDIZED and one.data != "mrpc":
            by_block.setdefault(one.block, []).append(one)
    matplotlib = require("matplotlib", "plot", "a picture")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    settings = {"text.parse_math": False, "svg.hashsalt": "embinit", "svg.fonttype": "none", "font.size": 10}
    with matplotlib.rc_context(settings):
        drawn, grid = pyplot.subplots(
            -(-len(by_block) // 2), 2, figsize=(8.4, 9.6), layout="constrained", squeeze=False
        )
        cells = [axes for line in grid for axes in line]
        for axes in cells[len(by_block) :]:
            axes.set_visible(False)
        for axes, (block, listed) in zip(cells, by_block.items(), strict=False):
            _panel(axes, block, listed)
        buffer = io.BytesIO()
        drawn.savefig(buffer, format="svg", metadata={"Date": None})
        pyplot.close(drawn)
    with replacing(path) as out:
        out.write(buffer.getvalue())
    return [path]


def _shown(listed: Sequence[Length]) -> list[Length]:
    """Return the lengths from 4 epochs on, the first of those with equal scores: training on changes nothing any more."""
    kept: list[Length] = []
    for one in listed:
        if one.epochs >= 4 and (not kept or one.scores != kept[-1].scores):
            kept.append(one)
    return kept[-_LINES:]


def _panel(axes: Any, block: str, listed: Sequence[Length]) -> None:
    for color, one in zip(COLORS[1:], _shown(listed), strict=False):
        places = sorted(one.scores)
        axes.plot(
            places, [one.scores[place] for place in places], marker="o", markersize=4, color=color,
            linestyle="-" if one.finished else ":", label=f"{one.epochs} epochs",
        )  # fmt: skip
    axes.axhline(listed[-1].random, color=COLORS[0], linewidth=1, linestyle="--", label="random rows")
    axes.set_xscale("log")
    axes.set_xticks([0.03, 0.1, 0.3, 1, 3], ["0.03", "0.1", "0.3", "1", "3"])
    axes.minorticks_off()
    axes.set_title(block, loc="left", fontsize=10)
    axes.set_ylabel("BLEU" if listed[0].translation else "accuracy, %")
    axes.set_xlabel("rate of the source's rows")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="lower right" if listed[0].translation else "best")
