"""The score and the split that a block is judged by."""

from __future__ import annotations

from collections.abc import Sequence

from embinit.corpora.data_sets import data_sets as known_tasks
from embinit.errors import closest
from embinit.experiments.definition.draft import kind_of
from embinit.experiments.definition.file import BlockSettings
from embinit.experiments.definition.problems import Problems
from embinit.experiments.definition.settings import TaskSettings

#: The scores of each kind of task. The first one is the default.
SCORES = {
    "translation": ("bleu", "sacrebleu", "chrf"),
    "classification": ("accuracy", "macro_f1", "matthews"),
    "language_model": ("perplexity", "word_perplexity", "bits_per_byte", "loss"),
    "masked_language_model": ("loss", "masked_accuracy"),
}


def score_and_split(
    block: BlockSettings, tasks: Sequence[TaskSettings], place: str, problems: Problems
) -> tuple[str, str]:
    """Return the score and the split that a block is judged by, which all of its tasks must have."""
    kinds = {kind_of(task) for task in tasks}
    if len(kinds) > 1:
        listed = " and ".join(f"a {kind.replace('_', ' ')}" for kind in sorted(kinds))
        problems.add(place, f"has tasks of different kinds, {listed}; make two blocks")
    kind, given = next(iter(kinds), None), block.model_fields_set
    score = block.score if "score" in given else SCORES[kind or "translation"][0]
    if kind is not None and score not in SCORES[kind]:
        problems.add(f"{place}.score", f"{score!r} is no score of a {kind}{closest(score, SCORES[kind])}")
    split = "test" if all(map(_has_test, tasks)) else "valid"
    return score, block.split if "split" in given else split


def _has_test(task: TaskSettings) -> bool:
    if task.name not in known_tasks():
        return True
    return any("test" in layout or "all" in layout for layout in known_tasks()[task.name].layouts)
