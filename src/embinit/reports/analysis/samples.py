"""Decoded sentences side by side, with their sources and references from the prepared tasks of a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from embinit.experiments.experiment import Block
from embinit.experiments.spec import Spec
from embinit.reports.analysis.rows import Results, finished, grouped
from embinit.reports.model import Example
from embinit.reports.scores import TableRow

if TYPE_CHECKING:
    from embinit.prepared.folder import Prepared


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
#: The number of rows that fit side by side.
_ROWS = 6


def no_texts(spec: Spec, split: str) -> None:
    """Return None, so that examples have only outputs."""


def examples(block: Block, rows: Sequence[TableRow], results: Results, texts: Texts = no_texts) -> tuple[Example, ...]:
    """Return a few sentences, evenly spaced among those on which the models differ.

    Each row of the first setting shows its lowest seed. A classification needs `texts`, because labels are useless without
    their texts.
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
    if known is None and len(spec.token_sides) == 1:
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


@cache
def prepared_with(data: str, folder: Path) -> Prepared | None:
    """Return the prepared task with this fingerprint, if it lies in this folder."""
    if not data or not folder.is_dir():
        return None
    from embinit.prepared.folder import is_intact, open_prepared

    for path in sorted(folder.iterdir()):
        if (path / "manifest.json").is_file() and is_intact(path, data):
            return open_prepared(path)
    return None


def texts_in(folder: Path) -> Texts:
    """Return a function that finds a run's sentences, if its prepared task lies in this folder."""

    def texts(spec: Spec, split: str) -> SplitTexts | None:
        prepared = prepared_with(spec.task.data, folder)
        return None if prepared is None or split not in prepared.splits else _known(prepared, split)

    return texts


def data_notes(names: Mapping[str, str], folder: Path) -> list[str]:
    """Return the notes on a user's own data: its splits and their sizes. Known data sets have theirs in `prepare`.

    Parameters
    ----------
    names
        The names of tasks by the fingerprints of their data.
    folder
        The folder of prepared tasks.
    """
    tasks = [(name, prepared_with(data, folder)) for data, name in names.items()]
    own = [(name, task) for name, task in tasks if task is not None and task.manifest["name"] == "files"]
    return [f"{name}: {note}" for name, task in own for note in task.manifest["notes"]]


def _known(prepared: Prepared, split: str) -> SplitTexts:
    from embinit.experiments.execution.scoring import text_of
    from embinit.text.markers import scheme_of

    first, last = prepared.sides[0], prepared.sides[-1]
    scheme, target = (scheme_of(prepared.vocabularies[side].tokens) for side in (first, last))
    packed, tokens = prepared.packed(split, first), prepared.vocabularies[first].tokens
    sources = [text_of([tokens[i] for i in packed[row]], scheme) for row in range(len(packed))]
    if prepared.task == "translation":
        references = [text_of(words, target) for words in prepared.reference_tokens(split)]
        return SplitTexts(sources, references, lambda text: text_of(re.split(" +", text), target))
    names = prepared.manifest["labels"]
    return SplitTexts(sources, [str(names[label]) for label in prepared.labels(split)])
