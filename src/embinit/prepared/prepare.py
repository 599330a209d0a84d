"""Prepare a task: tokenize a corpus, build its vocabularies, and write packed token ids."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

import embinit
from embinit.corpora.data_sets import data_sets
from embinit.corpora.examples import Corpus, Split
from embinit.errors import EmbinitError
from embinit.files import replacing_folder
from embinit.prepared.encoding import Encoded, encode
from embinit.prepared.folder import MASK, VERSION, Prepared, is_intact, open_prepared, write_manifest
from embinit.seeds import stream
from embinit.text.tokenizers import Tokenizer, tokenizer
from embinit.text.vocabulary import SPECIALS
from embinit.types import TEXT_TASKS, Vocabulary

#: Called with the name of the part, the number of sentences that are done, and their total.
Progress = Callable[[str, int, int], None]

_UNKNOWN = SPECIALS.index("<unk>")
_END = "<eos>"


@dataclass(frozen=True)
class Settings:
    """Everything that decides the contents of a prepared task, beside its source files."""

    name: str
    #: one for each side: `spacy:de`, `whitespace`, `characters`, `bytes`, or a tokenizer's file or folder
    tokenizers: tuple[str, ...]
    lower: bool
    min_count: int
    languages: tuple[str, ...]
    #: number of training rows to keep; None: all. A fixed stream draws them, so that a smaller sample is part of a larger
    #: one. Of running text the first lines are kept.
    rows: int | None = None
    #: number of tokens after which a sentence is cut (each of a pair, but no reference); None: never
    longest: int | None = None
    #: running text: `line` ends every line with <eos>, `blank` joins lines and ends each document at blank lines; None for
    #: other tasks
    boundary: Literal["line", "blank"] | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "longest"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise EmbinitError(f"{name} is {value}; at least 1 is needed")
        if self.boundary not in (None, "line", "blank"):
            raise EmbinitError(f"boundary is {self.boundary!r}; line or blank is expected")


def default_preparation(corpus: Corpus, name: str, tokenizers: Sequence[str]) -> tuple[bool, int]:
    """Return whether a data set is lower-cased, and the smallest count of its tokens, unless the user sets them."""
    words = all(spec in ("spacy", "whitespace") or spec.startswith("spacy:") for spec in tokenizers)
    # Scores of a text by sub-words or characters are compared across tokenizers, so that no piece becomes <unk>.
    if corpus.task in TEXT_TASKS and not words:
        return False, 1
    known = data_sets().get(name)
    return words and corpus.task not in TEXT_TASKS, 2 if known is None else known.min_count


def prepare(
    corpus: Corpus, settings: Settings, out: Path, progress: Progress = lambda *_: None
) -> tuple[Prepared, bool]:
    """Return the prepared task under `out`, and whether it is new; the same settings and files are prepared once."""
    if "train" not in corpus.splits:
        raise EmbinitError(f"{corpus.name} has no training split here, and the vocabulary is built from that alone")
    sources = _sources(corpus)
    if corpus.task in TEXT_TASKS:
        if settings.longest is not None:
            raise EmbinitError(f"{corpus.name} is running text, whose lines are never cut; leave `longest` out")
        settings = replace(settings, boundary=settings.boundary or "line")
    elif settings.boundary is not None:
        raise EmbinitError(f"{corpus.name} is no running text, so it has no boundary {settings.boundary!r}")
    corpus, left_out = _reduced(corpus, settings)
    path = out / _folder_name(settings, sources, corpus)
    if (path / "manifest.json").is_file():
        if is_intact(path):
            return open_prepared(path), False
        shutil.rmtree(path)  # damaged, and made again from the same files
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
        write_manifest(folder, manifest)
    return open_prepared(path), True


class _Work:
    """Tokenizes each text once: keeps the numbers of the training tokens between counting and writing."""

    def __init__(self, corpus: Corpus, settings: Settings, tokenize: dict[str, Tokenizer], progress: Progress) -> None:
        self._corpus, self._settings, self._tokenize, self._progress = corpus, settings, tokenize, progress
        self._total = sum(len(rows) * len(rows.texts) for rows in corpus.splits.values())
        self._done = 0
        self._train: dict[str, Encoded] = {}
        #: (split, side) -> the number of sentences that were cut
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
        """Return special tokens, then the tokens of the training side that are frequent enough, most frequent first."""
        train = self._train[side] = encode(self._tokens("train", side))
        occurrences = np.bincount(train.ids, minlength=len(train.numbers)).tolist()
        counts = {token: occurrences[number] for token, number in train.numbers.items()}
        specials = (*SPECIALS, MASK) if self._corpus.task == "masked_language_model" else SPECIALS
        if self._corpus.task in TEXT_TASKS:
            counts[_END] = len(train.lengths)  # every line ends with one
        seen = {special: counts.pop(special, 0) for special in specials}
        least = self._settings.min_count
        kept = sorted((token for token, count in counts.items() if count >= least), key=lambda t: (-counts[t], t))
        if not kept:
            raise EmbinitError(f"{self._corpus.name}: no token of the {side} side is seen {least} times or more")
        numbers = [seen[special] for special in specials] + [counts[token] for token in kept]
        return Vocabulary((*specials, *kept), np.array(numbers, dtype=np.int64), frozenset(specials))

    def write(self, folder: Path, split: str, side: str, vocabulary: Vocabulary) -> dict[str, int]:
        """Write one side of a split, and return its counts."""
        rows = [] if split == "train" else list(self._tokens(split, side))
        encoded = self._train.pop(side) if split == "train" else encode(rows)
        lengths, index = encoded.lengths, vocabulary.index
        small = np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32
        places = np.array([index.get(token, _UNKNOWN) for token in encoded.numbers], dtype=small)
        ids = places[encoded.ids]
        np.save(folder / f"{split}.{side}.ids.npy", ids)
        np.save(folder / f"{split}.{side}.offsets.npy", np.concatenate(([0], np.cumsum(lengths))))
        if side == "target" and split != "train":
            texts = self._corpus.splits[split].texts[1]
            references = {"texts": texts, "tokens": self._whole(texts) if self._cut[split, side] else rows}
            _write_json(folder / f"{split}.references.json", references)
        if self._corpus.task in TEXT_TASKS:
            _write_json(folder / f"{split}.{side}.sizes.json", _sizes(self._corpus.splits[split].texts[0]))
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


def _reduced(corpus: Corpus, settings: Settings) -> tuple[Corpus, int]:
    """Return the corpus with the training rows that are kept and its documents joined, and the number of rows left out."""
    train, rows = corpus.splits["train"], settings.rows
    left_out = 0
    if rows is not None and rows < len(train):
        left_out = len(train) - rows
        text = corpus.task in TEXT_TASKS
        chosen = np.arange(rows) if text else np.sort(stream(0, "training rows").permutation(len(train))[:rows])
        texts = tuple([side[i] for i in chosen.tolist()] for side in train.texts)
        kept = Split(texts, None if train.labels is None else train.labels[chosen], train.reading)
        corpus = replace(corpus, splits={**corpus.splits, "train": kept})
    if settings.boundary == "blank":
        joined = {name: replace(part, texts=(_documents(part.texts[0]),)) for name, part in corpus.splits.items()}
        corpus = replace(corpus, splits=joined)
    return corpus, left_out


def _documents(rows: Sequence[str]) -> list[str]:
    """Return the documents of a text, whose lines are joined by spaces; blank lines stand between documents."""
    documents: list[list[str]] = [[]]
    for row in rows:
        if row.strip():
            documents[-1].append(row.strip())
        elif documents[-1]:
            documents.append([])
    return [" ".join(document) for document in documents if document]


def _sizes(rows: Sequence[str]) -> dict[str, int]:
    """Return the number of lines, of words and of bytes of a text; each line's end counts as a word and as a byte.

    WikiText's published perplexities count the ends of lines so.
    """
    words = sum(len(row.split()) for row in rows) + len(rows)
    return {"lines": len(rows), "words": words, "bytes": sum(len(row.encode()) for row in rows) + len(rows)}


def _notes(settings: Settings, counted: dict[str, dict[str, dict[str, int]]], there: int, left_out: int) -> list[str]:
    """Return a sentence for the training rows that were left out, and for each side whose sentences were cut."""
    how = "drawn" if settings.boundary is None else "kept, the first"
    notes = [f"train: {settings.rows:,} rows were {how}, {left_out:,} left out"] if left_out else []
    if settings.rows is not None and settings.rows > there and not left_out:
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
    """Return the files that were read with their checksums; a generated corpus has its settings in the name."""
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


def _folder_name(settings: Settings, sources: list[dict[str, Any]], corpus: Corpus) -> str:
    """Return a readable name that differs whenever settings, tokenizers' files or sources do."""
    tokenizers = [_tokenizer_digest(spec) for spec in settings.tokenizers]
    # The version stands for everything outside files: rules of tokenizers, the grammar of generated captions.
    chosen = {key: value for key, value in asdict(settings).items() if value is not None}
    if corpus.task in TEXT_TASKS:
        chosen["task"] = corpus.task  # the same text serves both, with and without <mask>
    if corpus.held_out:
        chosen["held out"] = {name: len(corpus.splits[name]) for name in corpus.held_out}
    read = [Path(name).name for name in corpus.splits["train"].reading.files]
    if corpus.name == "files" and read != sorted(read):
        chosen["order"] = read  # the first file is the source, and `sources` is sorted
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
