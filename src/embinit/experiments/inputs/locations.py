"""Find the data and vectors of an experiment on this machine, and name the missing ones."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from embinit.corpora.data_sets import data_folder
from embinit.errors import EmbinitError, closest
from embinit.experiments.definition.draft import Draft, DraftBlock
from embinit.experiments.definition.settings import SourceSettings, TaskSettings
from embinit.experiments.inputs.lookup import find, not_found

_WORDS = re.compile(r"whitespace|characters|bytes|spacy(:\w+)?")
_GENERATED = ("captions", "captions-labelled", "captions-text")


@dataclass(frozen=True)
class Places:
    """The folders of data sets, of vectors and of prepared files; None for a folder that is not set."""

    data: Path | None = None
    vectors: Path | None = None
    work: Path = Path("runs/.work")
    #: if true, nothing is prepared, and anything that is not prepared yet raises `Unprepared`
    read_only: bool = False


def places(data: Path | None = None, vectors: Path | None = None, work: Path | None = None) -> Places:
    """Return the places; EMBINIT_DATA and EMBINIT_VECTORS set the folders that are not given."""
    return Places(
        data or _named("EMBINIT_DATA"), vectors or _named("EMBINIT_VECTORS"), work if work is not None else Places.work
    )


def _named(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


def vectors_at(path: str, where: Places, beside: Path) -> str | None:
    """Return what `load` takes for a source's path: an existing file or folder, a hub id, or a fetched name.

    A path is looked up beside the experiment file first, then below the folder of vectors. None if it is nowhere.
    """
    name, mark, detail = path.partition("::")
    place = find(name, _vector_folders(where, beside))
    if place is not None:
        return f"{place}{mark}{detail}"
    from embinit.hub import is_id
    from embinit.sources.catalogue import fetched_path, is_name

    if is_name(name):
        try:
            fetched_path(name)
        except EmbinitError:
            return None
        return path
    return path if is_id(name) else None


def tokenizers_at(spec: str, where: Places, beside: Path) -> list[str] | None:
    """Return what `tokenizer` takes: one for all sides, or one for each (`spacy, flan-t5-small`).

    A word tokenizer has a name. A sub-word tokenizer is a file, a folder or a hub id. None if one does not exist.
    """
    names = [name.strip() for name in spec.split(",")]
    places = [name if _WORDS.fullmatch(name) else vectors_at(name, where, beside) for name in names]
    existing = [place for place in places if place is not None]
    return existing if len(existing) == len(names) else None


def data_at(task: TaskSettings, where: Places, beside: Path) -> list[Path]:
    """Return the folder of a task's data set, its table, or its two text files; an empty list if one does not exist.

    A `path` is looked up beside the experiment file first, then below the folder of data. A data set without a `path` lies
    below the folder of data, in the folder of its name.
    """
    if task.path is None:
        folder = None if where.data is None else data_folder(where.data, task.name)
        return [folder] if folder is not None and folder.is_dir() else []
    paths = [find(name, data_folders(where, beside)) for name in _names(task.path, where, beside)]
    return [path for path in paths if path is not None] if all(paths) else []


def files_of(draft: Draft, where: Places) -> list[str | Path]:
    """Return the files of data, and the files and folders of tokenizers and vectors, that an experiment reads here."""
    beside = draft.file.parent
    folders = [path for task in draft.tasks.values() for path in data_at(task, where, beside)]
    files: list[str | Path] = [file for path in folders for file in _data_files(path)]
    for task in draft.tasks.values():
        files += tokenizers_at(task.tokenizer, where, beside) or []
    paths = [source.path for source in draft.sources.values() if source.path is not None]
    files += [source for path in paths if (source := vectors_at(path, where, beside)) is not None]
    return [draft.file, *([draft.included] if draft.included is not None else []), *files]


def _data_files(path: Path) -> list[Path]:
    """Return the files of a data set. Its folder may also hold the experiment, its report and its plan."""
    from embinit.corpora.user_files import SPLITS

    if not path.is_dir():
        return [path]
    names = {name for several in SPLITS.values() for name in several}
    files = [file for file in path.iterdir() if file.suffix == ".txt" or file.name.partition(".")[0] in names]
    return [file for file in files if file.is_file()]


def data_folders(where: Places, beside: Path) -> list[Path]:
    """Return the folders in which a path of data is looked up, in this order."""
    return [beside, *([where.data] if where.data is not None else [])]


def _vector_folders(where: Places, beside: Path) -> list[Path]:
    return [beside, *([where.vectors] if where.vectors is not None else [])]


def _names(path: str, where: Places, beside: Path) -> list[str]:
    """Return the paths that a task's `path` names: one, or two text files with a comma between them."""
    from embinit.corpora.user_files import named_paths

    whole = find(path, data_folders(where, beside)) is not None
    return [path] if whole else [str(name) for name in named_paths(path)]


class Lack(NamedTuple):
    """A missing input, and the searched folders, which results files leave out."""

    needs: str
    searched: str = ""


def missing_of(draft: Draft, block: DraftBlock, where: Places) -> Lack | None:
    """Return the missing inputs of a block, judged by their names; None if it can run."""
    folder = draft.file.parent
    tasks = [draft.tasks[name] for name in dict.fromkeys(run.task for run in block.runs)]
    lacks = [_task_missing(task, where, folder) for task in tasks]
    lacks += [_source_missing(draft.sources[name], where, folder) for name in block.source_names()]
    if not any(lacks):  # a tokenizer usually comes with its source, whose message has more detail
        lacks = [_tokenizer_missing(task.tokenizer, where, folder) for task in tasks]
    distinct = list(dict.fromkeys(lack for lack in lacks if lack is not None))
    if not distinct:
        return None
    return Lack(
        "; ".join(lack.needs for lack in distinct), "; ".join(lack.searched for lack in distinct if lack.searched)
    )


def _task_missing(task: TaskSettings, where: Places, beside: Path) -> Lack | None:
    if task.name in _GENERATED:
        return None
    others = [TaskSettings(also.partition(":")[0]) for also in task.also]
    return next((lack for data in (task, *others) if (lack := _data_missing(data, where, beside))), None)


def _data_missing(task: TaskSettings, where: Places, beside: Path) -> Lack | None:
    if task.path == "hub":
        return None
    paths = data_at(task, where, beside)
    name = task.official or f"the data set {task.name}"
    if not paths and task.path is not None:
        folders = data_folders(where, beside)
        lost = next(name for name in _names(task.path, where, beside) if find(name, folders) is None)
        official = f" ({task.official})" if task.official else ""
        return Lack(f"needs {lost}{official}", f"{not_found(lost, folders)}{_hint(where.data, 'data')}")
    if not paths and where.data is None:
        return Lack(f"needs {name}; name the folder of data sets with --data or EMBINIT_DATA")
    if not paths and where.data is not None:
        return Lack(f"needs {name} in {data_folder(where.data, task.name).name}/ below the folder of data")
    folder = paths[0]
    patterns = (task.needs, f"{task.needs}.*") if task.needs is not None else ()
    if patterns and not any(path for pattern in patterns for path in folder.glob(pattern)):
        return Lack(f"needs {name}: {task.needs} in {folder.name}/ below the folder of data")
    return None


def _source_missing(source: SourceSettings, where: Places, beside: Path) -> Lack | None:
    if source.glove is not None:
        lacks = [_text_missing(text, where, beside) for text in source.glove.texts]
        lack = next((lack for lack in lacks if lack is not None), None)
        return None if lack is None else Lack(f"{lack.needs}, to train {source.name} on", lack.searched)
    if source.path is None or vectors_at(source.path, where, beside) is not None:
        return None
    hint = _hint(where.vectors, "vectors")
    if source.official:
        return Lack(f"needs {source.official}{hint}")
    from embinit.sources.catalogue import is_name

    name = source.path.partition("::")[0]
    if is_name(name):
        return Lack(f"needs {name}; run `embinit fetch {name}`")
    return Lack(f"needs {name}", f"{not_found(name, _vector_folders(where, beside))}{hint}")


def _text_missing(text: str, where: Places, beside: Path) -> Lack | None:
    """Return the reason why a text is missing that vectors should learn from; None if it is here."""
    name, colon, _ = text.partition(":")
    if not colon:
        return _data_missing(TaskSettings("files", path=text), where, beside)
    return None if name in _GENERATED else _data_missing(TaskSettings(name), where, beside)


def _tokenizer_missing(spec: str, where: Places, beside: Path) -> Lack | None:
    for name in (name.strip() for name in spec.split(",")):
        if tokenizers_at(name, where, beside) is None:
            near = closest(name, ("whitespace", "characters", "bytes", "spacy"))
            if "did you mean" in near:
                return Lack(f"needs the tokenizer {name}", near.removeprefix("; "))
            searched = not_found(name, _vector_folders(where, beside))
            return Lack(f"needs the tokenizer {name}", f"{searched}{_hint(where.vectors, 'vectors')}")
    return None


def _hint(folder: Path | None, name: str) -> str:
    """Return the option that adds a folder to the search, if none is given."""
    return "" if folder is not None else f" (name another folder with --{name} or EMBINIT_{name.upper()})"
