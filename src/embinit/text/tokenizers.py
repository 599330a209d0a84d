"""Tokenizers by name: white space, spaCy's rules, any Hugging Face tokenizer or SentencePiece model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, closest, require
from embinit.hub import NoSuchFile, download, is_id
from embinit.text.token_files import SENTENCEPIECE_ENDINGS, SENTENCEPIECE_FILES, read_map

Tokenizer = Callable[[Iterable[str]], Iterator[list[str]]]
#: From some lines to the pieces of each, without special tokens.
Splitter = Callable[[list[str]], list[list[str]]]

_BATCH = 1000


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
    if is_id(spec):
        repository, _, revision = spec.partition("@")
        return _subwords(_from_hub(repository, revision or None))
    if path.name != spec:
        raise EmbinitError(f"there is no file or folder {spec}, which was to be the tokenizer")
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
    split = _splitter(path)
    return lambda text: split([text])[0]


def _subwords(path: Path) -> Tokenizer:
    """Return a tokenizer that splits many lines at once, which the libraries do on all cores."""
    split = _splitter(path)

    def tokenize(lines: Iterable[str]) -> Iterator[list[str]]:
        stream = iter(lines)
        while batch := list(islice(stream, _BATCH)):
            yield from split(batch)

    return tokenize


def _splitter(path: Path) -> Splitter:
    file = _file_of(path)
    return _sentencepiece(file) if file.suffix in SENTENCEPIECE_ENDINGS else _hugging_face(file)


def _file_of(path: Path) -> Path:
    """Return the file that splits text: this one, or a folder's tokenizer.json, vocab.txt or SentencePiece model."""
    if not path.is_dir():
        return path
    spm = sorted(entry.name for entry in path.iterdir() if entry.suffix in SENTENCEPIECE_ENDINGS)
    known = ("tokenizer.json", "vocab.txt", *SENTENCEPIECE_FILES)
    inside = [path / name for name in (*known, *spm[:1]) if (path / name).is_file()]
    if not inside:
        raise EmbinitError(f"{path} holds no tokenizer.json, no vocab.txt and no SentencePiece model")
    return inside[0]


def _from_hub(repository: str, revision: str | None) -> Path:
    """Return the file of a hub's model that splits text: tokenizer.json, or else its SentencePiece model."""
    try:
        return download(repository, "tokenizer.json", revision, "model")
    except NoSuchFile as missing:
        for name in SENTENCEPIECE_FILES:
            try:
                return download(repository, name, revision, "model")
            except NoSuchFile:
                continue
        raise missing from None


def _hugging_face(path: Path) -> Splitter:
    loaded = _loaded(path)
    # An encoding's own `tokens` would show unknown text as it is written.
    pieces = {i: piece for piece, i in loaded.get_vocab(with_added_tokens=True).items()}

    def split(lines: list[str]) -> list[list[str]]:
        return [[pieces[i] for i in one.ids] for one in loaded.encode_batch(lines, add_special_tokens=False)]

    return split


def _loaded(path: Path) -> Any:
    library = require("tokenizers", "hf", "a sub-word tokenizer")
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


def _sentencepiece(path: Path) -> Splitter:
    library = require("sentencepiece", "hf", f"splitting text by {path.name}")
    try:
        loaded = library.SentencePieceProcessor(model_file=str(path))
    except (OSError, RuntimeError):  # its message is a line of its own source code
        raise EmbinitError(f"{path} is no SentencePiece model that can be read") from None
    pieces = loaded.id_to_piece(list(range(loaded.get_piece_size())))
    return lambda lines: [[pieces[i] for i in ids] for ids in loaded.encode(lines)]


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
