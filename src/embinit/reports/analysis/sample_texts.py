"""Sources and references of decoded sentences, from the prepared tasks that a folder holds."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from embinit.experiments.execution.scoring import text_of
from embinit.experiments.inputs.fingerprints import fingerprint
from embinit.experiments.spec import Spec
from embinit.prepared.folder import Prepared, open_prepared
from embinit.reports.analysis.samples import Known, Texts
from embinit.text.markers import scheme_of


def texts_in(folder: Path) -> Texts:
    """Return what gives a run's sentences, if the task that it was trained on lies in this folder."""

    @cache
    def prepared(data: str) -> Prepared | None:
        for path in sorted(folder.iterdir()) if data and folder.is_dir() else []:
            if (path / "manifest.json").is_file() and fingerprint(path) == data:
                return open_prepared(path)
        return None

    def texts(spec: Spec, split: str) -> Known | None:
        found = prepared(spec.task.data)
        return None if found is None or split not in found.splits else _known(found, split)

    return texts


def _known(prepared: Prepared, split: str) -> Known:
    first, last = prepared.sides[0], prepared.sides[-1]
    scheme, target = (scheme_of(prepared.vocabularies[side].tokens) for side in (first, last))
    packed, tokens = prepared.packed(split, first), prepared.vocabularies[first].tokens
    sources = [text_of([tokens[i] for i in packed[row]], scheme) for row in range(len(packed))]
    if prepared.task == "translation":
        references = [text_of(words, target) for words in prepared.reference_tokens(split)]
        return Known(sources, references, lambda said: text_of(re.split(" +", said), target))
    names = prepared.manifest["labels"]
    return Known(sources, [str(names[label]) for label in prepared.labels(split)])
