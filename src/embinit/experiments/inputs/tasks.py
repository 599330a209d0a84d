"""Find, read and prepare the data set of a task, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from embinit import hub
from embinit.corpora import generated
from embinit.corpora.data_sets import tasks
from embinit.corpora.examples import Corpus
from embinit.corpora.running_text import read_text
from embinit.corpora.tasks import read_corpus, read_hub
from embinit.corpora.user import read_files
from embinit.corpora.user_files import find_user_files, is_table
from embinit.errors import EmbinitError, Unavailable, closest
from embinit.experiments.definition.draft import kind_of
from embinit.experiments.definition.settings import GENERATED, TaskSettings
from embinit.experiments.inputs.cache import Unprepared, cached, listing
from embinit.experiments.inputs.estimates import counts_of, estimated
from embinit.experiments.inputs.locations import Places, data_at, data_folders, tokenizers_at
from embinit.experiments.inputs.lookup import find, not_found
from embinit.prepared.folder import Prepared, fingerprint, is_intact, open_prepared
from embinit.prepared.prepare import Settings, default_preparation, prepare
from embinit.text.vocabulary import read_lines
from embinit.types import TEXT_TASKS, task_kind

#: Called with a description of the work, the amount done, and the whole amount if it is known.
Progress = Callable[[str, int, int | None], None]
#: The number of generated captions, if the file does not state it.
_SIZE = 20_000


@dataclass(frozen=True)
class Ready:
    """A prepared task, and the fingerprint of its contents; estimated sizes have no fingerprint."""

    prepared: Prepared
    data: str


def ready(task: TaskSettings, where: Places, beside: Path, progress: Progress) -> Ready:
    """Return the prepared task. It is prepared now if necessary; with `where.read_only` its sizes are estimated instead."""
    paths = _paths(task, where, beside)
    specs = tokenizers_at(task.tokenizer, where, beside)
    if specs is None:
        raise Unavailable(f"there is no tokenizer {task.tokenizer}")
    others = [_paths(TaskSettings(also.partition(":")[0]), where, beside) for also in task.also]
    read_from = _files_read(task, paths) if task.name == "files" else paths
    data_files = [listing(path) for path in (*read_from, *chain(*others))]
    inputs = [_decisive(task), data_files, [listing(spec) for spec in specs]]

    def read() -> Corpus:
        return _with_others(_corpus(task, paths), task, others)

    def make() -> dict[str, Any]:
        corpus = read()
        prepared, _ = prepare(corpus, _settings(corpus, task, specs), where.work / "prepared", progress)
        return {"folder": prepared.path.name, "data": fingerprint(prepared.path)}

    def usable(entry: dict[str, Any]) -> bool:
        folder = where.work / "prepared" / entry["folder"]
        if where.read_only:  # the large files need not be read, because nothing is trained on them now
            return bool(open_prepared(folder))
        return is_intact(folder, entry["data"])

    try:
        entry = cached(where, "task", inputs, usable, make)
    except Unprepared:
        counts = counts_of([task.name, task.pair, task.size, task.also, data_files], read)
        return Ready(estimated(counts, task, specs), "")
    return Ready(open_prepared(where.work / "prepared" / entry["folder"]), entry["data"])


def training_texts(name: str, language: str, where: Places, beside: Path) -> list[str]:
    """Return the training side of a data set in one language, for vectors that are trained on it."""
    data = TaskSettings(name)
    pair = None
    if kind_of(data) == "translation":
        languages = tasks()[name].languages
        other = next(code for code in ("en", *languages) if code != language)
        pair = f"{language}-{other}"
    corpus = _corpus(replace(data, pair=pair), _paths(data, where, beside))
    if "train" not in corpus.splits:
        raise Unavailable(f"{name} has no training rows here")
    if language not in corpus.languages:
        raise EmbinitError(f"{name} has no {language!r}{closest(language, corpus.languages)}")
    rows = corpus.splits["train"]
    return rows.texts[0] if pair else [text for side in rows.texts for text in side]


def file_texts(name: str, where: Places, beside: Path) -> list[str]:
    """Return the lines of a user's text file, or the training rows of a table, for vectors that are trained on them."""
    path = find(name, data_folders(where, beside))
    if path is None:
        raise Unavailable(f"needs {name}: {not_found(name, data_folders(where, beside))}")
    if path.is_dir() or is_table(path):
        return [text for side in read_files(path).splits["train"].texts for text in side]
    return list(read_lines([path]))


def _paths(task: TaskSettings, where: Places, beside: Path) -> list[Path]:
    """Return the files or the folder that a task is read from; generated data and the hub have none."""
    return [] if task.name in GENERATED or task.path == "hub" else data_at(task, where, beside)


def _files_read(task: TaskSettings, paths: list[Path]) -> list[Path]:
    """Return the user's files that are read. Other files in their folder may be outputs, so they do not count."""
    if kind_of(task) in TEXT_TASKS:
        return [file for path in paths for file in ([path] if path.is_file() else sorted(path.glob("*.*")))]
    return find_user_files(paths, task.pair).paths if paths else []


def _decisive(task: TaskSettings) -> dict[str, Any]:
    return {key: value for key, value in asdict(task).items() if key not in ("about", "official", "needs")}


def _corpus(task: TaskSettings, paths: list[Path]) -> Corpus:
    corpus = _read(task, paths)
    kind = kind_of(task)
    # Both kinds of language model read the same text.
    return replace(corpus, task=task_kind(kind)) if corpus.task in TEXT_TASKS and kind in TEXT_TASKS else corpus


def _read(task: TaskSettings, paths: list[Path]) -> Corpus:
    if task.name == "captions":
        return generated.captions(task.size or _SIZE, 0, task.pair)
    if task.name == "captions-labelled":
        return generated.labelled_captions(task.size or _SIZE, 0)
    if task.name == "captions-text":
        return generated.caption_text(task.size or _SIZE, 0)
    if task.path == "hub":
        return read_hub(task.name, hub.download, task.pair)
    if not paths:
        raise Unavailable(f"{task.name} needs a folder of data: --data or EMBINIT_DATA")
    if task.name != "files":
        return read_corpus(task.name, paths[0], task.pair)
    if kind_of(task) in TEXT_TASKS:
        return read_text(paths[0])
    corpus = read_files(paths, task.pair)
    if corpus.task != kind_of(task):
        raise EmbinitError(
            f'{paths[0]} holds a {corpus.task}, not a {kind_of(task)}; set kind = "{corpus.task}" in the task\'s table'
        )
    return corpus


def _with_others(corpus: Corpus, task: TaskSettings, others: list[list[Path]]) -> Corpus:
    """Return the corpus with the splits of other data sets that are scored too."""
    splits = dict(corpus.splits)
    for also, paths in zip(task.also, others, strict=True):
        name, _, split = also.partition(":")
        pair = "-".join(corpus.languages) if corpus.task == "translation" else None
        other = _corpus(TaskSettings(name, pair=pair), paths)
        if other.task != corpus.task or other.labels != corpus.labels:
            raise EmbinitError(f"{name} cannot be scored beside {task.name}: it is another kind of task")
        if split not in other.splits:
            raise EmbinitError(f"{name} has no split {split!r}{closest(split, other.splits)}")
        splits[f"{name}_{split}"] = other.splits[split]
    return replace(corpus, splits=splits)


def _settings(corpus: Corpus, task: TaskSettings, specs: list[str]) -> Settings:
    """Return how the corpus is prepared; the defaults are those of `embinit prepare`."""
    if len(specs) not in (1, len(corpus.languages)):
        raise EmbinitError(f"{task.name}: {len(specs)} tokenizers for {len(corpus.languages)} sides")
    each = specs if len(specs) > 1 else specs * len(corpus.languages)
    tokenizers = tuple(
        f"spacy:{language}" if spec == "spacy" else spec for spec, language in zip(each, corpus.languages, strict=True)
    )
    lower, least = default_preparation(corpus, task.name, each)
    return Settings(
        corpus.name, tokenizers, lower if task.lower is None else task.lower, task.min_count or least, corpus.languages,
        task.rows, task.longest, task.boundary,
    )  # fmt: skip
