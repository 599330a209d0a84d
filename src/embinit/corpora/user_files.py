"""Which of a user's files hold which split: parallel text, or tables with a header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from embinit.corpora.tables import ENDINGS, existing
from embinit.errors import EmbinitError, Unavailable

#: Split -> the names that its files may have. `all` are rows without a split.
SPLITS = {
    "train": ("train", "training"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test",),
    "all": ("data", "all", "corpus"),
}
TABLES = (".tsv", ".csv", ".jsonl", ".parquet")
#: Names of the two sides in files and in the columns of tables.
SOURCE, TARGET = ("source", "src"), ("target", "tgt", "trg")
_CODES = """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo
es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg
ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn
no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta
te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
#: ISO 639-1: endings of text files that name a language.
LANGUAGES = frozenset(_CODES.split())
_PACKED = re.compile(r"\.(gz|bz2|xz)$")
#: A message lists at most this many files of a folder.
_LISTED = 8


@dataclass(frozen=True)
class UserFiles:
    """The files of a data set, and the languages that their names tell."""

    #: split -> one table, or two text files, the source's first
    splits: dict[str, tuple[Path, ...]]
    pair: str | None

    @property
    def paths(self) -> list[Path]:
        """Return every file, in the order of the splits."""
        return [path for group in self.splits.values() for path in group]


def find_user_files(paths: Sequence[Path], pair: str | None = None) -> UserFiles:
    """Return the files of a data set.

    Parameters
    ----------
    paths
        One folder, one table, or two text files: the source's and the target's.
    pair
        The languages of a translation, `SOURCE-TARGET`.

    Raises
    ------
    Unavailable
        If a file does not exist, or a folder holds no training rows.
    EmbinitError
        If it cannot be told which file is the source, or rows are given with and without a split.
    """
    for path in paths:
        if not path.exists():
            raise Unavailable(f"no such file or folder: {path}")
    if len(paths) == 2:
        if pair is not None:
            _check_order(paths, pair)
        return UserFiles({"all": tuple(paths)}, pair or _pair_of(paths))
    (path,) = paths
    if path.is_file():
        _check_table(path)
        return UserFiles({"all": (path,)}, pair)
    located = {split: files for split, names in SPLITS.items() if (files := _files(path, split, names, pair))}
    if "all" in located and "train" in located:
        raise EmbinitError(f"{path} holds training rows and rows without a split; remove one of them")
    if "train" not in located and "all" not in located:
        raise Unavailable(_nothing_in(path, pair))
    return UserFiles(located, pair)


def named_paths(text: str) -> list[Path]:
    """Return the paths that a text names: one, or two with a comma between them.

    >>> [str(path) for path in named_paths("news.de, news.en")]
    ['news.de', 'news.en']
    """
    parts = [part.strip() for part in text.split(",")]
    two = len(parts) == 2 and all(parts) and not Path(text).exists()
    return [Path(part) for part in parts] if two else [Path(text)]


def language_of(path: Path) -> str | None:
    """Return the language that a text file's name ends in: `train.de`, `news.de.txt.gz`; None if it names none."""
    name = _PACKED.sub("", path.name).removesuffix(".txt")
    ending = name.rpartition(".")[2].lower()
    return ending if "." in name and ending in LANGUAGES else None


def _pair_of(paths: Sequence[Path]) -> str | None:
    languages = [language_of(path) for path in paths]
    return "-".join(language for language in languages if language) if all(languages) else None


def _check_order(paths: Sequence[Path], pair: str) -> None:
    """Raise EmbinitError if the names of two text files give the languages of a pair in the other order."""
    named = _pair_of(paths)
    if named is not None and named != pair and named.split("-")[::-1] == pair.split("-"):
        raise EmbinitError(
            f"{paths[0].name} is the source and {paths[1].name} the target, but the pair is {pair}; "
            f"write {named}, or name the files in the other order"
        )


def is_table(path: Path) -> bool:
    """Return whether a file's name ends like a table: `reviews.tsv`, `reviews.csv.gz`."""
    return _PACKED.sub("", path.name).endswith(TABLES)


def _check_table(path: Path) -> None:
    if not is_table(path):
        raise EmbinitError(
            f"{path} is neither a folder nor a table ({', '.join(TABLES)}); parallel text is two files: "
            f'path = "{path.name}, OTHER"'
        )


def _files(folder: Path, split: str, names: Sequence[str], pair: str | None) -> tuple[Path, ...]:
    """Return the files of a split; none if there are none."""
    prefixes = [*(f"{name}." for name in names), *([""] if split == "all" else [])]
    for prefix in prefixes:
        for sides in _sides(prefix, pair):
            paths = [existing(folder, [f"{prefix}{side}.txt", f"{prefix}{side}"]) for side in sides]
            both = tuple(path for path in paths if path is not None)
            if len(both) == 2:
                return both
    for name in names:
        for ending in TABLES:
            path = existing(folder, [name + ending])
            if path is not None:
                return (path,)
    if pair is None and split in ("train", "all"):
        _note_languages(folder, names)
    return ()


def _sides(prefix: str, pair: str | None) -> Iterator[tuple[str, str]]:
    """Yield the endings that the two files of a split may have."""
    yield from product(SOURCE, TARGET)
    a, _, b = (pair or "").partition("-")
    if prefix and a and b:
        yield a, b
        for both in (f"{a}-{b}", f"{b}-{a}"):
            yield f"{both}.{a}", f"{both}.{b}"


def _note_languages(folder: Path, names: Sequence[str]) -> None:
    """Raise EmbinitError if a folder holds text in two languages, because the source language is not known."""
    for name in names:
        files = [path for path in sorted(folder.glob(f"{name}.*")) if language_of(path)]
        languages = sorted({str(language_of(path)) for path in files})
        if len(languages) > 1:
            a, b = languages[:2]
            raise EmbinitError(
                f"{folder} holds {' and '.join(path.name for path in files)}; say which is the source: "
                f'pair = "{a}-{b}" or "{b}-{a}" (--pair in `embinit prepare`)'
            )


def _nothing_in(folder: Path, pair: str | None) -> str:
    a, _, b = (pair or "de-en").partition("-")
    there = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    listed = ", ".join(there[:_LISTED]) + (f" and {len(there) - _LISTED} more" if len(there) > _LISTED else "")
    packed = ", ".join(ending for ending in ENDINGS if ending)
    return (
        f"{folder} holds no training rows: expected train.source.txt and train.target.txt, train.{a} and train.{b}, "
        f"or train.tsv (.csv, .jsonl, .parquet) with a header; rows without a split: source.txt and target.txt, or "
        f"data.tsv. Files may be compressed ({packed}). It holds {listed or 'nothing'}"
    )
