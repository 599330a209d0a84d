"""A corpus and tokenizers made into a prepared task."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import embinit
from embinit.corpora.examples import Corpus, Split
from embinit.errors import EmbinitError
from embinit.files import replacing_folder
from embinit.prepared.folder import VERSION, Prepared, open_prepared
from embinit.seeds import stream
from embinit.text.tokenizers import Tokenizer, tokenizer
from embinit.text.vocabulary import SPECIALS
from embinit.types import Vocabulary

#: Called with (what is being done, sentences done, sentences in all).
Progress = Callable[[str, int, int], None]

_UNKNOWN = SPECIALS.index("<unk>")
_END = "<eos>"


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a prepared task holds, beside its source files."""

    name: str
    #: one a side: `spacy:de`, `whitespace`, or a tokenizer's file or folder
    tokenizers: tuple[str, ...]
    lower: bool
    min_count: int
    languages: tuple[str, ...]
    #: training rows that are kept, drawn once by a fixed stream; the fewer are among the more. None: all
    rows: int | None = None
    #: tokens after which a sentence is cut (each of a pair), references aside; None: never
    longest: int | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "longest"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise EmbinitError(f"{name} is {value}; at least 1 is needed")


def prepare(
    corpus: Corpus, settings: Settings, out: Path, progress: Progress = lambda *_: None
) -> tuple[Prepared, bool]:
    """Return the prepared task under `out`, and whether it was made now; the same settings and files are done once."""
    if "train" not in corpus.splits:
        raise EmbinitError(f"{corpus.name} has no training split here, and the vocabulary comes from that alone")
    sources = _sources(corpus)
    corpus, left_out = _drawn(corpus, settings.rows)
    path = out / _folder_name(settings, sources)
    if (path / "manifest.json").is_file():
        return open_prepared(path), False
    sides = ("source", "target") if corpus.task == "translation" else ("text",)
    tokenize = {side: tokenizer(spec, ("spacy",)) for side, spec in zip(sides, settings.tokenizers, strict=True)}
    work = _Work(corpus, settings, tokenize, progress)
    with replacing_folder(path) as folder:
        vocabularies = {side: work.vocabulary(side) for side in sides}
        counted = {
            split: {side: work.write(folder, split, side, vocabularies[side]) for side in sides}
            for split in corpus.splits
        }
        manifest = {
            "version": VERSION,
            "made by": f"embinit {embinit.__version__}",
            "name": corpus.name,
            "task": corpus.task,
            "settings": asdict(settings),
            "sources": sources,
            "labels": list(corpus.labels),
            "vocabularies": {side: len(vocabulary) for side, vocabulary in vocabularies.items()},
            "splits": {
                split: {
                    "rows": len(rows),
                    "rejected": dict(rows.reading.rejected),
                    "left out": left_out if split == "train" else 0,
                    "examples": rows.reading.examples,
                    "sides": counted[split],
                }
                for split, rows in corpus.splits.items()
            },
            "notes": [*corpus.notes, *_notes(settings, counted, len(corpus.splits["train"]), left_out)],
        }
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, ensure_ascii=False), encoding="utf-8")
    return open_prepared(path), True


class _Work:
    """Tokenizes each text once: training tokens are kept between counting and writing."""

    def __init__(self, corpus: Corpus, settings: Settings, tokenize: dict[str, Tokenizer], progress: Progress) -> None:
        self._corpus, self._settings, self._tokenize, self._progress = corpus, settings, tokenize, progress
        self._total = sum(len(rows) * len(rows.texts) for rows in corpus.splits.values())
        self._done = 0
        self._train: dict[str, list[list[str]]] = {}
        #: (split, side) -> sentences that were cut
        self._cut: Counter[tuple[str, str]] = Counter()

    def _tokens(self, split: str, side: str) -> Iterator[list[str]]:
        """Yield the tokens of each row; two sentences of a classification are joined by `<eos>`."""
        rows = self._corpus.splits[split]
        if self._corpus.task == "translation":
            yield from self._lines(rows.texts[0 if side == "source" else 1], split, side)
            return
        streams = [self._lines(texts, split, side) for texts in rows.texts]
        for parts in zip(*streams, strict=True):
            joined = list(parts[0])
            for part in parts[1:]:
                joined += [_END, *part]
            yield joined

    def _lines(self, texts: Sequence[str], split: str, side: str) -> Iterator[list[str]]:
        lines = (text.lower() if self._settings.lower else text for text in texts)
        for tokens in self._tokenize[side](lines):
            self._done += 1
            if self._done % 1000 == 0 or self._done == self._total:
                self._progress(f"{split}, {side}", self._done, self._total)
            longest = self._settings.longest
            if longest is not None and len(tokens) > longest:
                self._cut[split, side] += 1
                yield tokens[:longest]
            else:
                yield tokens

    def vocabulary(self, side: str) -> Vocabulary:
        """Return specials, then the tokens of the training side that are frequent enough, commonest first."""
        self._train[side] = list(self._tokens("train", side))
        counts = Counter(token for tokens in self._train[side] for token in tokens)
        seen = {special: counts.pop(special, 0) for special in SPECIALS}
        least = self._settings.min_count
        kept = sorted((token for token, count in counts.items() if count >= least), key=lambda t: (-counts[t], t))
        if not kept:
            raise EmbinitError(f"{self._corpus.name}: no token of the {side} side is seen {least} times or more")
        numbers = [seen[special] for special in SPECIALS] + [counts[token] for token in kept]
        return Vocabulary((*SPECIALS, *kept), np.array(numbers, dtype=np.int64), frozenset(SPECIALS))

    def write(self, folder: Path, split: str, side: str, vocabulary: Vocabulary) -> dict[str, int]:
        """Write one side of a split, and return what was counted."""
        rows = self._train.pop(side) if split == "train" else list(self._tokens(split, side))
        index = vocabulary.index
        numbers = [np.array([index.get(token, _UNKNOWN) for token in tokens], dtype=np.int64) for tokens in rows]
        lengths = np.array([len(row) for row in numbers], dtype=np.int64)
        ids = np.concatenate(numbers) if numbers else np.empty(0, np.int64)
        small = np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32
        np.save(folder / f"{split}.{side}.ids.npy", ids.astype(small))
        np.save(folder / f"{split}.{side}.offsets.npy", np.concatenate(([0], np.cumsum(lengths))))
        if side == "target" and split != "train":
            texts = self._corpus.splits[split].texts[1]
            references = {"texts": texts, "tokens": self._whole(texts) if self._cut[split, side] else rows}
            _write_json(folder / f"{split}.references.json", references)
        self._write_rest(folder, split, side, vocabulary)
        unknown = int((ids == _UNKNOWN).sum())
        return {
            "tokens": len(ids),
            "unknown": unknown,
            "longest": int(lengths.max(initial=0)),
            "empty": int((lengths == 0).sum()),
            "cut": self._cut[split, side],
        }

    def _whole(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the target's tokens without a cut: a translation is scored against all of its reference."""
        return list(self._tokenize["target"](text.lower() if self._settings.lower else text for text in texts))

    def _write_rest(self, folder: Path, split: str, side: str, vocabulary: Vocabulary) -> None:
        rows: Split = self._corpus.splits[split]
        if rows.labels is not None:
            np.save(folder / f"{split}.labels.npy", rows.labels)
        if split == "train":
            counts = vocabulary.counts.tolist() if vocabulary.counts is not None else []
            content = {"tokens": vocabulary.tokens, "counts": counts, "specials": sorted(vocabulary.specials)}
            _write_json(folder / f"{side}.vocabulary.json", content)


def _drawn(corpus: Corpus, rows: int | None) -> tuple[Corpus, int]:
    """Return the corpus with so many training rows, in their order, and how many were left out."""
    train = corpus.splits["train"]
    if rows is None or rows >= len(train):
        return corpus, 0
    chosen = np.sort(stream(0, "training rows").permutation(len(train))[:rows])
    texts = tuple([side[i] for i in chosen.tolist()] for side in train.texts)
    kept = Split(texts, None if train.labels is None else train.labels[chosen], train.reading)
    return replace(corpus, splits={**corpus.splits, "train": kept}), len(train) - rows


def _notes(settings: Settings, counted: dict[str, dict[str, dict[str, int]]], there: int, left_out: int) -> list[str]:
    """Return in words which training rows were left out and which sentences were cut."""
    notes = [f"train: {settings.rows:,} rows were drawn, {left_out:,} left out"] if left_out else []
    if settings.rows is not None and settings.rows > there:
        notes.append(f"train: {settings.rows:,} rows were asked for, there are {there:,}")
    cut = {(split, side): count["cut"] for split, sides in counted.items() for side, count in sides.items()}
    notes += [
        f"{split}, {side}: {count:,} sentences were cut after {settings.longest} tokens"
        for (split, side), count in cut.items()
        if count
    ]
    return notes


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _sources(corpus: Corpus) -> list[dict[str, Any]]:
    """Return the files that were read, by name, with their checksums; a generated corpus has its own in the name."""
    files = sorted({name for rows in corpus.splits.values() for name in rows.reading.files})
    listed = []
    for name in files:
        path = Path(name)
        if path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            listed.append({"file": path.name, "bytes": path.stat().st_size, "sha256": digest})
        else:
            listed.append({"file": name, "bytes": 0, "sha256": ""})
    return listed


def _folder_name(settings: Settings, sources: list[dict[str, Any]]) -> str:
    """Return a name that a person knows and that differs whenever settings, tokenizers' files or sources do."""
    tokenizers = [_tokenizer_digest(spec) for spec in settings.tokenizers]
    # The version stands for what is not in a file: rules of tokenizers, the grammar of generated captions.
    chosen = {key: value for key, value in asdict(settings).items() if value is not None}
    content = json.dumps([VERSION, embinit.__version__, chosen, tokenizers, sources], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    kind = Path(settings.tokenizers[0]).name.removesuffix(".json").partition(":")[0]
    pair = "-".join(settings.languages) if len(settings.languages) == 2 else ""
    return "-".join(part for part in (settings.name, pair, kind, digest) if part)


def _tokenizer_digest(spec: str) -> str:
    path = Path(spec)
    files = sorted(path.glob("*")) if path.is_dir() else [path] if path.is_file() else []
    return hashlib.sha256(
        b"".join(f.read_bytes() for f in files if f.suffix in (".json", ".txt", ".model"))
    ).hexdigest()
