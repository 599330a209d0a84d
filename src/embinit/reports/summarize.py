"""Build a report from an experiment and its results; writers add no numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, count

from embinit.experiments.experiment import Block, Experiment
from embinit.experiments.runs.result import Result, with_scored_split
from embinit.experiments.spec import FILE_SIDES
from embinit.format import listed
from embinit.recipes.names import named_recipes
from embinit.reports.analysis import provenance
from embinit.reports.analysis.answers import block_notes, block_verdicts, caveats, report_verdicts
from embinit.reports.analysis.chance import majority_share, runs_not_learned
from embinit.reports.analysis.curves import NUMBER, curves, sweep
from embinit.reports.analysis.matrices import shapes
from embinit.reports.analysis.provenance import commands
from embinit.reports.analysis.published import is_recipe, recipe_of
from embinit.reports.analysis.rows import Results, finished, grouped, rows, with_verdicts
from embinit.reports.analysis.samples import Texts, examples, no_texts
from embinit.reports.analysis.selection import choices, with_named
from embinit.reports.metrics import metric as metric_of
from embinit.reports.model import Example, Part, Summary
from embinit.reports.scores import Metric, TableRow
from embinit.reports.sentences import answer


def summarize(
    experiment: Experiment,
    results: Results,
    *,
    texts: Texts = no_texts,
    shown: Mapping[str, tuple[Example, ...]] | None = None,
    metrics: Mapping[str, Metric] | None = None,
    file: str = "",
    options: Sequence[str] = (),
) -> Summary:
    """Return the report of an experiment.

    Parameters
    ----------
    experiment
        The experiment that was read from its file.
    results
        Its finished runs: key -> result.
    texts
        Finds the sentences that were decoded; without it, examples have only outputs.
    shown
        The examples of each block, if they are known already; a results file has no outputs.
    metrics
        How the score of each block is shown, by the block's name; by default as its name in `metrics.toml` says.
    file
        The experiment's TOML, as the commands of the report name it.
    options
        The folders that the user named (`--data`, `--runs` ...), for the same commands.
    """
    asked = experiment
    experiment = replace(asked, blocks=tuple(with_scored_split(block, results) for block in asked.blocks))
    scores = [(metrics or {}).get(block.name) or metric_of(block.score, block.split) for block in experiment.blocks]
    tables = _judged(
        [bool(block.chooses_for) for block in experiment.blocks],
        [(metric, rows(block, results, experiment.baselines, metric))
         for block, metric in zip(experiment.blocks, scores, strict=True)],
    )  # fmt: skip
    parts = tuple(
        _part(experiment, block, metric, table, results, texts, shown)
        for block, metric, table in zip(experiment.blocks, scores, tables, strict=True)
    )
    chosen = choices(parts)
    parts = with_named(parts, chosen)
    file = file or f"{experiment.name}.toml"
    moved = [block.name for block, own in zip(asked.blocks, experiment.blocks, strict=True) if block.split != own.split]
    return Summary(
        name=experiment.name,
        title=experiment.title,
        question=experiment.question,
        baseline=experiment.baseline,
        answer=answer(report_verdicts(parts, experiment.baselines, chosen)),
        caveats=(*_on_validation_rows(moved, len(parts)), *caveats(parts)),
        notes=tuple(experiment.notes),
        recipes=_recipes(experiment),
        colors=_colors(parts, experiment.baseline),
        parts=parts,
        cost=provenance.cost(experiment, results),
        commands=commands(file, options),
        file=file,
        choices=chosen,
    )


def _on_validation_rows(blocks: Sequence[str], count: int) -> list[str]:
    """Return a sentence if blocks are judged on validation rows because their data has no test rows."""
    if not blocks:
        return []
    data = "The data has" if len(blocks) == count else f"The data of {listed(blocks)} has"
    return [
        f"{data} no test rows: the scores are those on the validation rows, which also chose the epoch that is scored."
    ]


def _judged(choosing: list[bool], tables: list[tuple[Metric, tuple[TableRow, ...]]]) -> list[tuple[TableRow, ...]]:
    """Return the rows of all blocks with verdicts; blocks that only choose starts are corrected separately."""
    rows_by_place = dict[int, tuple[TableRow, ...]]()
    for kind in (False, True):
        places = [place for place, chooses in enumerate(choosing) if chooses == kind]
        rows_by_place |= zip(places, with_verdicts([tables[place] for place in places]), strict=True)
    return [rows_by_place[place] for place in range(len(tables))]


def _part(
    experiment: Experiment,
    block: Block,
    metric: Metric,
    table: Sequence[TableRow],
    results: Results,
    texts: Texts,
    shown: Mapping[str, tuple[Example, ...]] | None,
) -> Part:
    swept = sweep(block, table, results, experiment.baseline)
    # Runs from another machine are shown even if the data for more of them is not here. Runs of the baseline do not count,
    # unless the block has no other start, because random rows need no source and many blocks share them.
    own = [row for row in table if not row.baseline] or table
    missing = "" if any(row.scores or row.unscored for row in own) else block.missing
    runs_of = grouped(block)
    done_by_row = {row.label: finished(runs_of[row.axes], results) for row in table}
    done = [result for runs in done_by_row.values() for result in runs]
    unlearned = runs_not_learned(done_by_row, block.split)
    majority = _majority(block, metric, done, texts)
    return Part(
        name=block.name,
        task=_task(block),
        metric=metric,
        missing=missing,
        paper=block.paper,
        rows=tuple(table),
        answer=answer(block_verdicts(table, metric, experiment.baselines, swept, missing, majority, unlearned)),
        notes=block_notes(table, swept, block.split, unlearned),
        curves=curves(block, table, results),
        sweep=swept,
        shapes=shapes(block, table, results),
        examples=examples(block, table, results, texts) if shown is None else shown.get(block.name, ()),
        sources=block.sources,
        signatures=provenance.signatures(done),
        settings=provenance.settings(block, results),
        candidate=block.candidate,
        chooses_for=block.chooses_for,
    )


def _majority(block: Block, metric: Metric, done: Sequence[Result], texts: Texts) -> float | None:
    """Return the share of the largest class, if the accuracy of one data set is judged and its labels are at hand."""
    if metric.name != "accuracy" or len({result.spec.task.data for result in done}) != 1:
        return None
    known = texts(done[0].spec, block.split)
    share = None if known is None else majority_share(known.references)
    return None if share is None else metric.factor * share


def _task(block: Block) -> str:
    tasks = {planned.spec.task: None for planned in block.runs}
    return ", ".join(dict.fromkeys(f"{task.name} {task.pair}" if task.pair else task.name for task in tasks))


def _recipes(experiment: Experiment) -> dict[str, str]:
    """Return each recipe with its description, or with its steps if the file defines it or writes them out."""
    steps: dict[str, dict[str, None]] = {}
    swept: set[str] = set()
    for block in experiment.blocks:
        for planned in block.runs:
            own = recipe_of(planned.axes)
            for place, side in planned.spec.sides:
                name = own if own and own not in named_recipes() and own != side.recipe else side.recipe
                steps.setdefault(name, {})[side.steps or side.recipe] = None
                # The places of a sweep are on its axis.
                if is_recipe(block.sweep) and block.sweep in ("recipe", f"{FILE_SIDES[place]}.recipe"):
                    swept.add(name)
    about = {}
    for name, ways in steps.items():
        if name in named_recipes():
            about[name] = named_recipes()[name]["about"]
        elif name not in ways:  # defined in the file; the numbers of a sweep are on its axis
            about[name] = ", ".join(dict.fromkeys(NUMBER.sub(r"\1=…", way) if len(ways) > 1 else way for way in ways))
        elif name not in swept:
            rows = "the source's rows" if name.startswith("pretrained") else "random rows"
            about[name] = f"{rows} after these steps" if "|" in name else rows
    return about


#: The paper's starts in the order of their colours, and the numbers of colours for other starts.
_STARTS = ("xavier", "pretrained", "pretrained_xavier", "pretrained_shuffled", "xavier_pretrained")
_OTHERS = (5, 6, 7, 1, 2, 3, 4)


def _colors(parts: Sequence[Part], baseline: str) -> dict[str, int]:
    """Return every series, the baseline first, with the number of its colour.

    The paper's starts have fixed colours, and the others take the rest. Grey, the first colour, is for a baseline; it is
    taken last if the baseline has another. Series of sweeps come last, because their charts have their own colours.
    """
    ordered = sorted(parts, key=lambda part: part.sweep is not None)
    names = sorted({row.series: None for part in ordered for row in part.rows}, key=lambda name: name != baseline)
    fixed = {name: _STARTS.index(name) for name in names if name in _STARTS}
    places = (*_OTHERS, 0) if baseline in fixed else (0, *_OTHERS)
    free = (place for place in chain(places, count(len(places))) if place not in fixed.values())
    return {name: fixed[name] if name in fixed else next(free) for name in names}
