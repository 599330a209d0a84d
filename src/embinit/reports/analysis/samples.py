"""Decoded sentences side by side: the same few of the test set, by each recipe's model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from embinit.experiments.experiment import Block
from embinit.experiments.spec import Spec
from embinit.reports.analysis.rows import Results, finished, grouped
from embinit.reports.model import Example
from embinit.reports.scores import TableRow


def _as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True)
class SplitTexts:
    """The sentences of a split: sources, references, and a function that makes outputs readable (joins pieces)."""

    sources: Sequence[str]
    references: Sequence[str]
    readable: Callable[[str], str] = _as_it_is


#: Returns the sentences of a run's split; None if they are not at hand.
Texts = Callable[[Spec, str], SplitTexts | None]

_SHOWN = 5
#: Rows that fit side by side.
_ROWS = 6


def no_texts(spec: Spec, split: str) -> None:
    """Return None: without the data set, examples have only outputs."""


def examples(block: Block, rows: Sequence[TableRow], results: Results, texts: Texts = no_texts) -> tuple[Example, ...]:
    """Return a few sentences, evenly spaced among those on which the models differ; none is picked by hand.

    Each row of the first setting shows its lowest seed. A classification needs `texts`, because labels without their text
    say nothing.
    """
    outputs: dict[str, list[str]] = {}
    spec = None
    runs_of = grouped(block)
    for row in rows:
        if row.setting != rows[0].setting or len(outputs) == _ROWS:
            continue
        for result in finished(runs_of[row.axes], results):
            if block.split in result.outputs:
                outputs[row.series] = result.outputs[block.split]
                spec = spec or result.spec
                break
    if spec is None:
        return ()
    known = texts(spec, block.split)
    if known is None and len(spec.sides) == 1:
        return ()
    known = known or SplitTexts((), ())
    count = min(len(lines) for lines in outputs.values())
    differ = [i for i in range(count) if len({lines[i] for lines in outputs.values()}) > 1]
    return tuple(
        Example(
            number=i + 1,
            source=known.sources[i] if i < len(known.sources) else "",
            reference=known.references[i] if i < len(known.references) else "",
            outputs={name: known.readable(lines[i]) for name, lines in outputs.items()},
        )
        for i in _spaced(differ)
    )


def _spaced(places: list[int]) -> list[int]:
    if len(places) <= _SHOWN:
        return places
    return [places[(2 * k + 1) * len(places) // (2 * _SHOWN)] for k in range(_SHOWN)]
