"""Sources and references of decoded sentences, from the prepared tasks that a folder holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from embinit.experiments.spec import Spec
from embinit.reports.analysis.samples import SplitTexts, Texts

if TYPE_CHECKING:
    from embinit.prepared.folder import Prepared


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
