"""Read or train the vectors of a source, align them with a vocabulary, and keep the rows as a small file."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from embinit.alignment import Matching, align
from embinit.corpora import captions
from embinit.errors import EmbinitError, Unavailable
from embinit.experiments.definition.settings import GloveSettings, SourceSettings, TaskSettings
from embinit.experiments.inputs.cache import cached, listing
from embinit.experiments.inputs.locations import Places, data_at, vectors_at
from embinit.experiments.inputs.row_files import is_intact, write_rows
from embinit.experiments.inputs.tasks import Progress, Ready, file_texts, training_texts
from embinit.experiments.spec import digest
from embinit.files import component, replacing
from embinit.glove.checkpoint import beside as checkpoint_beside
from embinit.glove.checkpoint import clear
from embinit.glove.output import write
from embinit.glove.training import train
from embinit.text.tokenizers import tokenizer


@dataclass(frozen=True)
class AlignedFile:
    """Aligned rows on disk: their fingerprint, dimension and coverage."""

    rows: str
    dim: int
    path: Path
    #: share of types that have a row
    covered: float


def aligned_rows(
    source: SourceSettings, task: Ready, side: str, where: Places, beside: Path, progress: Progress
) -> AlignedFile:
    """Return the source's rows for one side of a task."""
    path = vectors_of(source, where, beside, progress)

    def make() -> dict[str, Any]:
        progress(f"reading {source.name}", 0, None)
        matching = Matching(compose=source.compose, continuations=source.continuations)
        aligned = align(path, task.prepared.vocabularies[side], matching=matching)
        if not aligned.found.any():
            raise EmbinitError(f"{source.name}: no token of the {side} side of {task.prepared.path.name} is in it")
        return {"dim": aligned.dim, "covered": float(aligned.found.mean()), "rows": write_rows(aligned, where.work)}

    def usable(entry: dict[str, Any]) -> bool:
        file = _file(where, entry["rows"])
        return file.is_file() and (where.read_only or is_intact(file, entry["rows"]))

    options = [*([] if source.compose else ["not composed"]), *(["continuations"] if source.continuations else [])]
    inputs = [listing(path), task.data, side, *options]
    entry = cached(where, "rows", inputs, usable, make)
    return AlignedFile(entry["rows"], entry["dim"], _file(where, entry["rows"]), entry["covered"])


def _file(where: Places, rows: str) -> Path:
    return where.work / "sources" / f"{rows[:16]}.safetensors"


def vectors_of(source: SourceSettings, where: Places, beside: Path, progress: Progress) -> str:
    """Return the file, folder or name that a source's vectors are read from; GloVe vectors are trained first, once."""
    if source.glove is None:
        place = vectors_at(str(source.path), where, beside)
        if place is None:
            raise Unavailable(f"{source.name}: there is no {source.path}")
        return place
    settings = source.glove

    def make() -> dict[str, Any]:
        return {"file": _trained(source.name, settings, where, beside, progress)}

    def usable(entry: dict[str, Any]) -> bool:
        return _is_whole(where.work / "glove" / entry["file"])

    texts = [_text_files(text, where, beside) for text in settings.texts]
    entry = cached(where, "glove", [asdict(settings), texts], usable, make)
    return str(where.work / "glove" / entry["file"])


def _text_files(text: str, where: Places, beside: Path) -> list[Any]:
    """Return the files that a text is read from, with their sizes and times."""
    name, colon, _ = text.partition(":")
    if name == "captions":
        return [text]
    task = TaskSettings(name) if colon else TaskSettings("files", path=text)
    return [file for path in data_at(task, where, beside) for file in listing(path)]


def _trained(name: str, settings: GloveSettings, where: Places, beside: Path, progress: Progress) -> str:
    """Train vectors on one thread, so that the same text gives the same file; return the file's name."""
    lines = [line for text in settings.texts for line in _lines(text, settings, where, beside)]
    seen = hashlib.sha256()
    for line in lines:
        seen.update(line.encode() + b"\n")
    file = (
        f"{component(name, 'the name of a source with glove')}-{digest([asdict(settings), seen.hexdigest()])[:8]}.txt"
    )
    path = where.work / "glove" / file
    if _is_whole(path):
        return file
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    trained = train(
        lines, dim=settings.dim, window=settings.window, epochs=settings.epochs, min_count=settings.min_count,
        tokenize=tokenizer(settings.tokenizer), lower=settings.lower, x_max=settings.x_max, alpha=settings.alpha,
        lr=settings.lr, threads=1, seed=settings.seed, checkpoint=checkpoint_beside(path), origin=", ".join(settings.texts),
        progress=lambda what, done, total: progress(f"{name}, {what}", done, total),
    )  # fmt: skip
    write(path, trained.vocabulary, trained.vectors)
    with replacing(_checksum_file(path)) as out:
        out.write(_checksum(path).encode())
    clear(path)
    return file


def _is_whole(path: Path) -> bool:
    """Return whether trained vectors exist and equal their checksum. Vectors of earlier versions have no checksum."""
    if not path.is_file():
        return False
    stated = _checksum_file(path)
    return not stated.is_file() or stated.read_bytes() == _checksum(path).encode()


def _checksum_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lines(text: str, settings: GloveSettings, where: Places, beside: Path) -> list[str]:
    """Return the sentences of `captions:de`, of `DATA SET:LANGUAGE`, or of a user's file."""
    name, colon, language = text.partition(":")
    if not colon:
        return file_texts(text, where, beside)
    if name == "captions":
        return list(islice(captions.stream(language, settings.seed), settings.sentences))  # type: ignore[arg-type]
    return training_texts(name, language, where, beside)
