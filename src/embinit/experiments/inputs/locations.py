"""Where data, vectors and work lie on this machine; and what of it an experiment needs is not there."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from embinit.corpora.tasks import data_folder
from embinit.errors import EmbinitError
from embinit.experiments.definition.draft import Draft, DraftBlock
from embinit.experiments.definition.settings import GloveSettings, SourceSettings, TaskSettings
from embinit.hub import is_id
from embinit.sources.catalogue import fetched_path, is_name

_WORDS = re.compile(r"whitespace|characters|bytes|spacy(:\w+)?")
_GENERATED = ("captions", "captions-labelled", "captions-text")


@dataclass(frozen=True)
class Places:
    """The folders of data sets and of vectors, if any, and where what is made from them is kept."""

    data: Path | None = None
    vectors: Path | None = None
    work: Path = Path("runs/.work")
    #: look only: anything that is not prepared yet raises `Unprepared`
    read_only: bool = False


def places(data: Path | None = None, vectors: Path | None = None, work: Path | None = None) -> Places:
    """Return the places as they were given, else as EMBINIT_DATA and EMBINIT_VECTORS name them."""
    return Places(
        data or _named("EMBINIT_DATA"), vectors or _named("EMBINIT_VECTORS"), work if work is not None else Places.work
    )


def _named(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


def vectors_at(path: str, where: Places, beside: Path) -> str | None:
    """Return what `load` takes for a source's path: a file or folder that is there, a hub id, a fetched name; None: none."""
    name, mark, detail = path.partition("::")
    folders = [Path(), *([where.vectors] if where.vectors is not None else []), beside]
    for folder in folders[1:] if not Path(name).expanduser().is_absolute() else folders[:1]:
        found = folder / Path(name).expanduser()
        if found.exists():
            return f"{found}{mark}{detail}"
    if is_name(name):
        try:
            fetched_path(name)
        except EmbinitError:
            return None
        return path
    return path if is_id(name) else None


def tokenizers_at(spec: str, where: Places, beside: Path) -> list[str] | None:
    """Return what `tokenizer` takes, one for all sides or one a side: `spacy`, or `spacy, flan-t5-small`.

    Words go by name, sub-words by a tokenizer's file or folder that is there, or by a hub id; None: one is not there.
    """
    names = [name.strip() for name in spec.split(",")]
    found = [name if _WORDS.fullmatch(name) else vectors_at(name, where, beside) for name in names]
    sound = [one for one in found if one is not None]
    return sound if len(sound) == len(names) else None


def data_at(task: TaskSettings, where: Places) -> Path | None:
    """Return the folder of a task's data set, whether or not it is there; None where no folder of data was named."""
    path = Path(task.path or task.name).expanduser()
    if path.is_absolute():
        return path
    if where.data is None:
        return None
    return where.data / path if task.path else data_folder(where.data, task.name)


def missing_of(draft: Draft, block: DraftBlock, where: Places) -> str:
    """Return in words why a block cannot be run here; empty where it can, as far as names tell."""
    beside = draft.file.parent
    tasks = [draft.tasks[name] for name in dict.fromkeys(run.task for run in block.runs)]
    whys = [_task_missing(task, where) for task in tasks]
    whys += [_source_missing(draft.sources[name], where, beside) for name in block.source_names()]
    if not any(whys):  # a tokenizer mostly comes with its source, which says more of itself
        lacking = [task.tokenizer for task in tasks if tokenizers_at(task.tokenizer, where, beside) is None]
        whys = [f"needs the tokenizer {name} below the folder of vectors" for name in lacking]
    return "; ".join(dict.fromkeys(why for why in whys if why))


def _task_missing(task: TaskSettings, where: Places) -> str:
    if task.name in _GENERATED:
        return ""
    others = [TaskSettings(also.partition(":")[0]) for also in task.also]
    return next((why for one in (task, *others) if (why := _data_missing(one, where))), "")


def _data_missing(task: TaskSettings, where: Places) -> str:
    if task.path == "hub":
        return ""
    folder = data_at(task, where)
    name = task.official or f"the data set {task.name}"
    if folder is None:
        return f"needs {name} (say where data sets lie: --data or EMBINIT_DATA)"
    if not folder.is_dir():
        return f"needs {name} in {folder.name}/ below the folder of data"
    patterns = (task.needs, f"{task.needs}.*") if task.needs is not None else ()
    if patterns and not any(found for pattern in patterns for found in folder.glob(pattern)):
        return f"needs {name}: {task.needs} in {folder.name}/ below the folder of data"
    return ""


def _source_missing(source: SourceSettings, where: Places, beside: Path) -> str:
    if source.glove is not None:
        made = GloveSettings(**{**source.glove, "texts": tuple(source.glove["texts"])})
        names = [text.partition(":")[0] for text in made.texts]
        whys = [_data_missing(TaskSettings(name), where) for name in names if name not in _GENERATED]
        return next((f"{why}, to train {source.name} on" for why in whys if why), "")
    if source.path is None or vectors_at(source.path, where, beside) is not None:
        return ""
    folder = "" if where.vectors is not None else " (say where vectors lie: --vectors or EMBINIT_VECTORS)"
    return f"needs {source.official or source.path}{folder}"
