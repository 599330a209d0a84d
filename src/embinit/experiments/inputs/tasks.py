"""A task's data set, found, read and prepared; each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from embinit import hub
from embinit.corpora import generated
from embinit.corpora.examples import Corpus
from embinit.corpora.tasks import read_corpus, read_hub, tasks
from embinit.corpora.user import read_files
from embinit.errors import EmbinitError, Unavailable, closest
from embinit.experiments.definition.draft import kind_of
from embinit.experiments.definition.settings import TaskSettings
from embinit.experiments.inputs.cache import Unprepared, listing, remembered
from embinit.experiments.inputs.estimates import counts_of, estimated
from embinit.experiments.inputs.locations import Places, data_at, tokenizers_at
from embinit.prepared.folder import Prepared, fingerprint, is_intact, open_prepared
from embinit.prepared.prepare import Settings, prepare

#: Called with (what is being done, how much is done, how much there is where that is known).
Progress = Callable[[str, int, int | None], None]
#: Generated captions, where a file does not say how many.
_SIZE = 20_000


@dataclass(frozen=True)
class Ready:
    """A prepared task, and the fingerprint of its contents; estimated sizes have no fingerprint."""

    prepared: Prepared
    data: str


def ready(task: TaskSettings, where: Places, beside: Path, progress: Progress) -> Ready:
    """Return the prepared task. It is prepared now if that has not been done; with `where.read_only` it is estimated."""
    folder = None if task.name.startswith("captions") or task.path == "hub" else data_at(task, where)
    specs = tokenizers_at(task.tokenizer, where, beside)
    if specs is None:
        raise Unavailable(f"there is no tokenizer {task.tokenizer}")
    others = [data_at(TaskSettings(also.partition(":")[0]), where) for also in task.also]
    files = [listing(path) for path in (folder, *specs, *others)]
    about = [_decisive(task), files]

    def corpus_now() -> Corpus:
        return _with_others(_corpus(task, folder), task, others)

    def make() -> dict[str, Any]:
        corpus = corpus_now()
        prepared, _ = prepare(corpus, _settings(corpus, task, specs), where.work / "prepared", progress)
        return {"folder": prepared.path.name, "data": fingerprint(prepared.path)}

    def sound(known: dict[str, Any]) -> bool:
        folder = where.work / "prepared" / known["folder"]
        if where.read_only:  # nothing is trained on it now, so that the large files need not be read
            return bool(open_prepared(folder))
        return is_intact(folder, known["data"])

    try:
        known = remembered(where, "task", about, sound, make)
    except Unprepared:
        read = [listing(path) for path in (folder, *others)]
        counts = counts_of([task.name, task.pair, task.size, task.also, read], corpus_now)
        return Ready(estimated(counts, task, specs), "")
    return Ready(open_prepared(where.work / "prepared" / known["folder"]), known["data"])


def training_texts(name: str, language: str, where: Places) -> list[str]:
    """Return the training side of a data set in one language, for vectors that are trained on it."""
    data = TaskSettings(name)
    pair = None
    if kind_of(data) == "translation":
        known = tasks()[name].languages
        other = next(one for one in ("en", *known) if one != language)
        pair = f"{language}-{other}"
    corpus = _corpus(replace(data, pair=pair), data_at(data, where))
    if "train" not in corpus.splits:
        raise Unavailable(f"{name} has no training rows here")
    if language not in corpus.languages:
        raise EmbinitError(f"{name} has no {language!r}{closest(language, corpus.languages)}")
    rows = corpus.splits["train"]
    return rows.texts[0] if pair else [text for side in rows.texts for text in side]


def _decisive(task: TaskSettings) -> dict[str, Any]:
    return {key: value for key, value in asdict(task).items() if key not in ("about", "official", "needs")}


def _corpus(task: TaskSettings, folder: Path | None) -> Corpus:
    if task.name == "captions":
        return generated.captions(task.size or _SIZE, 0, task.pair)
    if task.name == "captions-labelled":
        return generated.labelled_captions(task.size or _SIZE, 0)
    if task.path == "hub":
        return read_hub(task.name, hub.download, task.pair)
    if folder is None:
        raise Unavailable(f"{task.name} needs a folder of data: --data or EMBINIT_DATA")
    if task.name != "files":
        return read_corpus(task.name, folder, task.pair)
    corpus = read_files(folder, task.pair)
    if corpus.task != kind_of(task):
        raise EmbinitError(f"{folder} holds a {corpus.task}, not a {kind_of(task)}; set the task's kind")
    return corpus


def _with_others(corpus: Corpus, task: TaskSettings, folders: list[Path | None]) -> Corpus:
    """Return the corpus with the splits of other data sets that are scored too."""
    splits = dict(corpus.splits)
    for also, folder in zip(task.also, folders, strict=True):
        name, _, split = also.partition(":")
        pair = "-".join(corpus.languages) if corpus.task == "translation" else None
        other = _corpus(TaskSettings(name, pair=pair), folder)
        if other.task != corpus.task or other.labels != corpus.labels:
            raise EmbinitError(f"{name} cannot be scored beside {task.name}: it is another kind of task")
        if split not in other.splits:
            raise EmbinitError(f"{name} has no split {split!r}{closest(split, other.splits)}")
        splits[f"{name}_{split}"] = other.splits[split]
    return replace(corpus, splits=splits)


def _settings(corpus: Corpus, task: TaskSettings, specs: list[str]) -> Settings:
    """Return how the corpus is prepared, as `embinit prepare` does where the file does not say otherwise."""
    if len(specs) not in (1, len(corpus.languages)):
        raise EmbinitError(f"{task.name}: {len(specs)} tokenizers for {len(corpus.languages)} sides")
    each = specs if len(specs) > 1 else specs * len(corpus.languages)
    tokenizers = tuple(
        f"spacy:{language}" if spec == "spacy" else spec for spec, language in zip(each, corpus.languages, strict=True)
    )
    words = all(spec == "whitespace" or spec.startswith("spacy") for spec in each)
    least = task.min_count or (tasks()[task.name].min_count if task.name in tasks() else 2)
    return Settings(
        corpus.name, tokenizers, words if task.lower is None else task.lower, least, corpus.languages, task.rows,
        task.longest,
    )  # fmt: skip
