"""Tokenizers by name: white space, characters, bytes, spaCy's rules, a Hugging Face tokenizer, a SentencePiece model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, closest, require
from embinit.hub import NoSuchFile, download, is_id, is_tokenizer
from embinit.text.markers import to_byte_level
from embinit.text.token_files import SENTENCEPIECE_ENDINGS, SENTENCEPIECE_FILES, check_size, read_json_object

Tokenizer = Callable[[Iterable[str]], Iterator[list[str]]]
#: From a list of lines to the pieces of each line, without special tokens.
Splitter = Callable[[list[str]], list[list[str]]]

_BATCH = 1000


def tokenizer(spec: Any, more_names: Sequence[str] = ()) -> Tokenizer:
    """Return a function from lines to token lists.

    The name is `whitespace`, `characters`, `bytes`, `spacy:en`, or a tokenizer's file, folder or hub id. A tokenizer object
    of transformers or tokenizers works too. Bytes are spelled as GPT-2 spells them. An error message lists `more_names`, the
    names that the caller accepts besides these.
    """
    if is_tokenizer(spec):
        return _subwords(spec)
    spec = str(spec)
    if spec in _SPLITS:
        return _SPLITS[spec]
    if spec == "spacy":
        raise EmbinitError("the tokenizer spacy needs a language, for example spacy:en or spacy:de")
    if spec.startswith("spacy:"):
        return _spacy(spec.removeprefix("spacy:"))
    path = Path(spec)
    if path.exists():
        return _subwords(path)
    if is_id(spec):
        repository, _, revision = spec.partition("@")
        return _subwords(_from_hub(repository, revision or None))
    if path.name != spec:
        raise EmbinitError(f"there is no tokenizer file or folder {spec}")
    # Of equally close names the last one in the alphabet is suggested: spacy:en.
    names = (*more_names, *_SPLITS, "spacy:cs", "spacy:de", "spacy:en")
    raise EmbinitError(f"unknown tokenizer {spec!r}{closest(spec, names)} (or a tokenizer's file, folder or hub id)")


def _whitespace(lines: Iterable[str]) -> Iterator[list[str]]:
    return (line.split() for line in lines)


def _characters(lines: Iterable[str]) -> Iterator[list[str]]:
    return (list(line) for line in lines)


def _bytes(lines: Iterable[str]) -> Iterator[list[str]]:
    return (list(to_byte_level(line)) for line in lines)


_SPLITS: dict[str, Tokenizer] = {"whitespace": _whitespace, "characters": _characters, "bytes": _bytes}


def _spacy(language: str) -> Tokenizer:
    spacy = require("spacy", "spacy", f"the tokenizer spacy:{language}")
    try:
        split_line = spacy.blank(language).tokenizer
    except (ImportError, ValueError):
        raise EmbinitError(f"spaCy has no tokenizer for the language {language!r}; try en, de, fr, cs or xx") from None
    return lambda lines: ([token.text for token in split_line(line)] for line in lines)


def subword(tokenizer: Any) -> Callable[[str], list[str]]:
    """Return a function from text to pieces, without special tokens, for a tokenizer: a file, a folder or an object."""
    split = _splitter(tokenizer)
    return lambda text: split([text])[0]


def _subwords(tokenizer: Any) -> Tokenizer:
    """Return a tokenizer that splits batches of lines, which the libraries do on all cores."""
    split = _splitter(tokenizer)

    def tokenize(lines: Iterable[str]) -> Iterator[list[str]]:
        remaining = iter(lines)
        while batch := list(islice(remaining, _BATCH)):
            yield from split(batch)

    return tokenize


def _splitter(tokenizer: Any) -> Splitter:
    if isinstance(tokenizer, Path):
        file = check_size(_tokenizer_file(tokenizer))
        return _sentencepiece(file) if file.suffix in SENTENCEPIECE_ENDINGS else _pieces(_load_tokenizer(file))
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(backend, "to_str"):
        return _pieces(_without_padding(type(backend).from_str(backend.to_str())))  # a copy: the user's stays as it is
    return lambda lines: [tokenizer.tokenize(line) for line in lines]


def _tokenizer_file(path: Path) -> Path:
    """Return the path itself, or a folder's tokenizer.json, vocab.txt or SentencePiece model."""
    if not path.is_dir():
        return path
    spm = sorted(entry.name for entry in path.iterdir() if entry.suffix in SENTENCEPIECE_ENDINGS)
    known = ("tokenizer.json", "vocab.txt", *SENTENCEPIECE_FILES)
    files = [path / name for name in (*known, *spm[:1]) if (path / name).is_file()]
    if not files:
        raise EmbinitError(f"{path} has no tokenizer.json, no vocab.txt and no SentencePiece model")
    return files[0]


def _from_hub(repository: str, revision: str | None) -> Path:
    """Return the tokenizer.json of a model on the hub, or its SentencePiece model if it has none."""
    try:
        return download(repository, "tokenizer.json", revision, "model")
    except NoSuchFile as missing:
        for name in SENTENCEPIECE_FILES:
            try:
                return download(repository, name, revision, "model")
            except NoSuchFile:
                continue
        raise missing from None


def _pieces(loaded: Any) -> Splitter:
    # Pieces come from the ids, because `Encoding.tokens` shows unknown text as it was written.
    pieces = {piece_id: piece for piece, piece_id in loaded.get_vocab(with_added_tokens=True).items()}

    def split(lines: list[str]) -> list[list[str]]:
        encodings = loaded.encode_batch(lines, add_special_tokens=False)
        return [[pieces[piece_id] for piece_id in encoding.ids] for encoding in encodings]

    return split


def _load_tokenizer(path: Path) -> Any:
    library = require("tokenizers", "hf", "a sub-word tokenizer")
    try:
        if path.suffix == ".json":
            return _without_padding(library.Tokenizer.from_file(str(path)))
        return _wordpiece(path)
    except EmbinitError:
        raise
    except Exception as error:  # the library raises bare Exception
        raise EmbinitError(f"{path} cannot be read as a tokenizer: {error}") from None


def _without_padding(loaded: Any) -> Any:
    loaded.no_padding()
    loaded.no_truncation()
    return loaded


def _sentencepiece(path: Path) -> Splitter:
    library = require("sentencepiece", "hf", f"splitting text with {path.name}")
    try:
        loaded = library.SentencePieceProcessor(model_file=str(path))
    except (OSError, RuntimeError):  # the library's message is a line of its source code
        raise EmbinitError(f"{path} cannot be read as a SentencePiece model") from None
    pieces = loaded.id_to_piece(list(range(loaded.get_piece_size())))
    return lambda lines: [[pieces[piece_id] for piece_id in ids] for ids in loaded.encode(lines)]


def _wordpiece(path: Path) -> Any:
    """Return BERT's tokenizer for a list of pieces. The library's own class requires [CLS] and [SEP] in the list."""
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers

    if "[UNK]" not in path.read_text(encoding="utf-8").split("\n"):
        raise EmbinitError(f"{path} is not a WordPiece list: it has no [UNK]")
    wordpiece = tokenizers.Tokenizer(models.WordPiece.from_file(str(path), unk_token="[UNK]"))
    wordpiece.normalizer = normalizers.BertNormalizer(lowercase=_lowercases(path))
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return wordpiece


def _lowercases(path: Path) -> bool:
    """Return `do_lower_case` of the folder's configuration; without it, whether the list has no capital letter."""
    config = path.with_name("tokenizer_config.json")
    if config.is_file():
        do_lower_case = read_json_object(config).get("do_lower_case")
        if do_lower_case is not None:
            return bool(do_lower_case)
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    return not any(line != line.lower() for line in lines if not line.startswith("["))
