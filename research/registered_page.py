"""The page on the test of the registered rule: results/registered_rule.md."""

from __future__ import annotations

from collections.abc import Sequence

from embinit.format import NONE, fixed, interval, plural, signed
from embinit.reports.model import Table, TableCell
from embinit.reports.results_reader import ResultsFile
from embinit.reports.writers.markdown import table, text
from embinit.statistics import Clustered
from research.registered import (
    ADVISERS,
    FRESH_SEEDS,
    KEPT_ASIDE,
    OUTCOMES,
    RegisteredBlock,
    judge,
    judge_separately,
    margin,
    missing_parts,
    open_text,
    outcome,
    registered_blocks,
    regret,
)
from research.travel import ENOUGH

TITLE = "# The test of the registered rule"
_SENTENCES = {
    "held": "Both criteria hold on the data sets kept aside.",
    "held where made": (
        "The criteria do not both hold on the data sets kept aside, but both hold when all data sets are pooled."
    ),
    "not held": "The criteria do not both hold, neither on the data sets kept aside nor on all.",
    "lost": "On the data sets kept aside, an upper bound lies below zero.",
}


def page(files: Sequence[ResultsFile]) -> list[str]:
    """Return the lines of the page; none if the results contain no experiment of the test."""
    blocks = registered_blocks(files)
    if not blocks:
        return []
    about = "[The registration](../docs/explanation/registered-rule.md) has the rule, the criteria and what follows."
    lines = [TITLE, "", f"**{text(headline(blocks))}**", "", about, ""]
    # Only complete parts are judged, because a missing run would change their means.
    complete = [block for block in blocks if not missing_parts(blocks, block.part)]
    if not complete:
        return lines
    lines += ["## Criteria", "", table(_criteria(complete)), ""]
    lines += [f"- {text(line)}" for line in _reading(complete)] + [""]
    lines += ["## Each data set alone", "", text("These readings decide nothing."), "", table(_alone(complete)), ""]
    lines += ["## Classifiers at the epoch of the lowest validation loss", ""]
    lines += [
        text(
            "This reading decides nothing. It is validation accuracy for every classifier, because histories hold neither "
            "Matthews' correlation nor test scores; translators have this epoch anyway."
        ),
        "",
        table(_criteria(complete, by_loss=True)),
        "",
        table(_alone(complete, by_loss=True)),
        "",
    ]
    lines += ["## Regret", "", table(_regrets(complete)), ""]
    lines += [text("The distance to the best start that was run, in BLEU or points; data sets weigh the same."), ""]
    lines += ["## Length of training", "", table(_lengths(complete)), ""]
    return lines


def headline(blocks: Sequence[RegisteredBlock]) -> str:
    """Return the outcome of the test, and the advice that follows."""
    result = outcome(blocks)
    if result == "open":
        return f"Open. Missing: {open_text(blocks)}."
    return f"{_SENTENCES[result]} Advice that follows: {OUTCOMES[result]}"


def _parts(blocks: Sequence[RegisteredBlock]) -> dict[str, list[RegisteredBlock]]:
    """Return the groups of blocks that are judged together. The last group decides nothing."""
    aside = [block for block in blocks if block.part == KEPT_ASIDE]
    fresh = [block for block in blocks if block.part == FRESH_SEEDS]
    both = {"all data sets": list(blocks)} if aside and fresh else {}
    return {name: part for name, part in {"kept aside": aside, **both, "fresh seeds": fresh}.items() if part}


def _criteria(blocks: Sequence[RegisteredBlock], by_loss: bool = False) -> Table:
    rows = []
    for name, part in _parts(blocks).items():
        judgement = judge(part, by_loss)
        for place, (comparator, difference) in enumerate(judgement.differences.items()):
            gain = _yes(judgement.gain) if comparator == "random rows" else ""
            no_loss = "" if place else _yes(judgement.no_loss)
            first = (TableCell("" if place else name), TableCell(comparator))
            rows.append((*first, *_pooled(difference), TableCell(gain), TableCell(no_loss)))
    header = ("data sets", "the rule minus", "blocks", "difference", "95 %", "gain", f"no loss over {margin():g}")
    return Table("Criteria", header, tuple(rows), words=2)


def _alone(blocks: Sequence[RegisteredBlock], by_loss: bool = False) -> Table:
    rows = []
    for comparator, differences in judge_separately(blocks, by_loss).items():
        for place, (data, difference) in enumerate(differences.items()):
            rows.append((TableCell("" if place else comparator), TableCell(data), *_pooled(difference)))
    return Table("Alone", ("the rule minus", "data set", "blocks", "difference", "95 %"), tuple(rows), words=2)


def _pooled(difference: Clustered) -> tuple[TableCell, ...]:
    texts = (
        str(difference.blocks),
        signed(difference.mean, 2),
        interval(difference.low, difference.high, 2, sign=True),
    )
    return tuple(TableCell(cell) for cell in texts)


def _regrets(blocks: Sequence[RegisteredBlock]) -> Table:
    parts = _parts(blocks)
    rows = tuple(
        (TableCell(name), *(TableCell(NONE if (mean := regret(part, start)) is None else fixed(mean, 2))
                            for part in parts.values()))
        for name, start in ADVISERS.items()
    )  # fmt: skip
    return Table("Regret", ("adviser", *parts), rows)


def _lengths(blocks: Sequence[RegisteredBlock]) -> Table:
    rows = tuple(
        (
            TableCell(block.name),
            TableCell(str(block.epochs)),
            TableCell(fixed(block.best_random, 1)),
            TableCell(_yes(block.long_enough)),
        )
        for block in blocks
    )
    return Table("Lengths", ("block", "epochs", "best epoch of random rows", f"{ENOUGH} times as long"), rows)


def _reading(blocks: Sequence[RegisteredBlock]) -> list[str]:
    lines = [
        "Differences in BLEU or points, paired by seed. The mean is taken over blocks, then over data sets. "
        "Intervals are clustered by seed.",
        "A gain: the interval of the difference to random rows lies above zero. No loss: the intervals of both differences "
        f"lie above −{margin():g}.",
    ]
    short = [block.name for block in blocks if not block.long_enough]
    if short:
        lines.append(
            f"{plural(len(short), 'block')} trained for fewer than {ENOUGH} times the epochs that random rows need, the "
            f"minimum of the rule. They count nevertheless, as registered: {'; '.join(short)}."
        )
    unscored = sum(count for block in blocks for count in block.unscored.values())
    if unscored:
        lines.append(f"{plural(unscored, 'run')} diverged and left no score. Their seeds are left out of the pairs.")
    return lines


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
