"""Tokenizers by name: white space, spaCy's rules, any Hugging Face tokenizer on disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, closest, require
from embinit.hub import download
from embinit.text.token_files import SENTENCEPIECE_ENDINGS, read_map

Tokenizer = Callable[[Iterable[str]], Iterator[list[str]]]

_BATCH = 1000
_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+(@[\w./-]+)?")


def tokenizer(spec: str, also: Sequence[str] = ()) -> Tokenizer:
    """Return a function from lines to token lists: `whitespace`, `spacy:en`, or a tokenizer's file, folder or hub id.

    `also` are names that the caller understands beside these; an error lists them too.
    """
    if spec == "whitespace":
        return _whitespace
    if spec == "spacy":
        raise EmbinitError("the tokenizer spacy needs a language here: spacy:en, spacy:de ...")
    if spec.startswith("spacy:"):
        return _spacy(spec.removeprefix("spacy:"))
    path = Path(spec)
    if path.exists():
        return _subwords(path)
    if _HUB_ID.fullmatch(spec):
        repository, _, revision = spec.partition("@")
        return _subwords(download(repository, "tokenizer.json", revision or None, "model"))
    names = (*also, "whitespace", "spacy:en", "spacy:de", "spacy:fr", "spacy:cs")
    raise EmbinitError(f"unknown tokenizer {spec!r}{closest(spec, names)} (or a tokenizer's file, folder or hub id)")


def _whitespace(lines: Iterable[str]) -> Iterator[list[str]]:
    return (line.split() for line in lines)


def _spacy(language: str) -> Tokenizer:
    spacy = require("spacy", "spacy", f"the tokenizer spacy:{language}")
    try:
        make = spacy.blank(language).tokenizer
    except (ImportError, ValueError):
        raise EmbinitError(f"spaCy has no tokenizer for language {language!r}; try en, de, fr, cs or xx") from None
    return lambda lines: ([token.text for token in make(line)] for line in lines)


def subword(path: Path) -> Callable[[str], list[str]]:
    """Return a function from text to pieces, without special tokens, for a tokenizer's file or folder."""
    loaded = _hugging_face(path)
    pieces = _pieces(loaded)
    return lambda text: [pieces[i] for i in loaded.encode(text, add_special_tokens=False).ids]


def _subwords(path: Path) -> Tokenizer:
    """Return a tokenizer that encodes many lines at once, which the library does on all cores."""
    loaded = _hugging_face(path)
    pieces = _pieces(loaded)

    def tokenize(lines: Iterable[str]) -> Iterator[list[str]]:
        stream = iter(lines)
        while batch := list(islice(stream, _BATCH)):
            for encoding in loaded.encode_batch(batch, add_special_tokens=False):
                yield [pieces[i] for i in encoding.ids]

    return tokenize


def _pieces(loaded: Any) -> dict[int, str]:
    """Return the piece of each id; an encoding's own `tokens` would show unknown text as it is written."""
    return {i: piece for piece, i in loaded.get_vocab(with_added_tokens=True).items()}


def _hugging_face(path: Path) -> Any:
    library = require("tokenizers", "hf", "a sub-word tokenizer")
    if _is_sentencepiece(path):
        raise EmbinitError(
            f"{path} is a SentencePiece model, whose tokens can be read but which cannot split text here; "
            "give a folder with the tokenizer.json of the same model"
        )
    if path.is_dir():
        inside = [path / name for name in ("tokenizer.json", "vocab.txt") if (path / name).is_file()]
        if not inside:
            raise EmbinitError(f"{path} holds no tokenizer.json and no vocab.txt")
        path = inside[0]
    try:
        if path.suffix == ".json":
            loaded = library.Tokenizer.from_file(str(path))
            loaded.no_padding()
            loaded.no_truncation()
            return loaded
        return _wordpiece(path)
    except EmbinitError:
        raise
    except Exception as error:  # the library raises bare Exception
        raise EmbinitError(f"{path} is no tokenizer that can be read: {error}") from None


def _is_sentencepiece(path: Path) -> bool:
    """Return whether this is a SentencePiece file, or a folder that has no other tokenizer."""
    if not path.is_dir():
        return path.suffix in SENTENCEPIECE_ENDINGS
    names = {entry.name for entry in path.iterdir()}
    return not names & {"tokenizer.json", "vocab.txt"} and any(n.endswith(SENTENCEPIECE_ENDINGS) for n in names)


def _wordpiece(path: Path) -> Any:
    """Return BERT's tokenizer for a list of pieces; the library's own class insists on [CLS] and [SEP]."""
    from tokenizers import Tokenizer as Made
    from tokenizers import models, normalizers, pre_tokenizers

    if "[UNK]" not in path.read_text(encoding="utf-8").split("\n"):
        raise EmbinitError(f"{path} is no WordPiece list: it has no [UNK]")
    made = Made(models.WordPiece.from_file(str(path), unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=_lowercases(path))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


def _lowercases(path: Path) -> bool:
    """Return what the folder's configuration says, and else whether the list has no capital letter."""
    config = path.with_name("tokenizer_config.json")
    if config.is_file():
        said = read_map(config).get("do_lower_case")
        if said is not None:
            return bool(said)
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    return not any(line != line.lower() for line in lines if not line.startswith("["))
