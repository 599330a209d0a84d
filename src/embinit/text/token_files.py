"""Reading the tokens of a vocabulary from the files that tokenizers are saved in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError
from embinit.files import read_whole
from embinit.text import sentencepiece
from embinit.text.markers import looks_special

#: Endings of SentencePiece models, and their names in the folder of a checkpoint.
SENTENCEPIECE_ENDINGS = (".model", ".spm")
SENTENCEPIECE_FILES = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
#: The largest token list of a public model, with a million tokens, has a tenth of this.
_LARGEST_FILE = 1 << 28
#: Ids that no token has become rows. A vocabulary with more of them than this, and than it has tokens, is refused.
_LARGEST_GAP = 100_000
#: Files in the folder of a checkpoint that hold its tokens, best first.
FOLDER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    *SENTENCEPIECE_FILES,
    "tokens.json",
)


@dataclass(frozen=True)
class TokenTable:
    """Tokens by id; None if an id has no token."""

    tokens: list[str | None]
    specials: frozenset[str]
    #: the tokenizer that splits words: a tokenizer.json, a WordPiece list, a SentencePiece model, or a tokenizer object
    tokenizer: Any = None


def token_table(find_file: Callable[[str], Path | None], source: str) -> TokenTable:
    """Return the tokens of a checkpoint. `find_file` returns the path of a file by its name, None if it does not exist."""
    for name in FOLDER_FILES:
        path = find_file(name)
        if path is None:
            continue
        table = read_tokens(path)
        if name.endswith(".model"):
            table = _with_model_conventions(table, name, find_file)
        return _with_added_tokens(table, find_file)
    raise EmbinitError(f"{source} has no token list; looked for {', '.join(FOLDER_FILES)}")


def tokenizer_tokens(tokenizer: Any) -> TokenTable:
    """Return the tokens of a tokenizer object of transformers or tokenizers: those of its tokenizer.json."""
    source = tokenizer_name(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(backend, "to_str"):
        return _from_tokenizer(json.loads(backend.to_str()), source, tokenizer)
    specials = frozenset(tokenizer.all_special_tokens)  # a pure Python tokenizer has no tokenizer.json
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    tokens = _tokens_by_id(vocabulary, source)
    return TokenTable(tokens, specials | frozenset(filter(looks_special, vocabulary)), tokenizer)


def tokenizer_name(tokenizer: Any) -> str:
    """Return the folder or hub id that a tokenizer object came from, or the name of its class."""
    return str(getattr(tokenizer, "name_or_path", "")) or f"a {type(tokenizer).__name__}"


def read_tokens(path: Path) -> TokenTable:
    """Return the tokens of one file: tokenizer.json, a JSON list or object, a SentencePiece model, or one token per line."""
    data = read_whole(path, _LARGEST_FILE)
    if not data.strip():
        raise EmbinitError(f"{path} is empty; expected tokens")
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            return _from_json(json.loads(data), path)
        except EmbinitError:
            raise
        except (ValueError, RecursionError):  # a list with one token per line may begin with `[PAD]`
            if path.suffix == ".json":
                raise EmbinitError(f"{path} is not a complete JSON file; expected tokens") from None
    if data[:1] == b"\n" and path.suffix in SENTENCEPIECE_ENDINGS:
        tokens, specials = sentencepiece.pieces(data, str(path))
        return TokenTable(list(tokens), specials, path)
    if b"\0" in data[:4096]:
        raise EmbinitError(
            f"{path} is not a token list; expected tokenizer.json, a SentencePiece model, JSON or one token per line"
        )
    return _from_lines(data, path)


def check_size(path: Path) -> Path:
    """Return the path of a tokenizer's file that a library reads whole; an error if it is a device or too large."""
    try:
        if path.exists() and not path.is_file():
            raise EmbinitError(f"{path} is not a regular file; expected a tokenizer")
        if path.stat().st_size > _LARGEST_FILE:
            raise EmbinitError(f"{path} is larger than {_LARGEST_FILE >> 20} MB, as no tokenizer is")
    except OSError as error:
        if isinstance(error, EmbinitError):
            raise
        raise EmbinitError(f"cannot read {path}: {error.strerror or error}") from None
    return path


def _from_lines(data: bytes, path: Path) -> TokenTable:
    lines = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
    if lines[-1] == "":
        lines.pop()
    tokens: list[str | None] = [line.removesuffix("\r") for line in lines]
    specials = frozenset(token for token in tokens if token and looks_special(token))
    return TokenTable(tokens, specials, path if "[UNK]" in specials else None)


def _from_json(content: Any, path: Path) -> TokenTable:
    if isinstance(content, list) and all(isinstance(token, str) for token in content):
        return TokenTable(list(content), frozenset(filter(looks_special, content)))
    if isinstance(content, dict) and isinstance(content.get("tokens"), list):
        table = _from_json(content["tokens"], path)
        declared = content.get("specials", [])
        if not isinstance(declared, list) or not all(isinstance(token, str) for token in declared):
            raise EmbinitError(f"{path} is damaged: its specials are not a list of tokens")
        return replace(table, specials=table.specials | frozenset(declared))
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        return _from_tokenizer(content, path, path)
    if isinstance(content, dict) and content and all(map(_is_id, content.values())):
        return TokenTable(_tokens_by_id(content, path), frozenset(filter(looks_special, content)))
    raise EmbinitError(
        f"{path} is not a token list; expected tokenizer.json, a list of tokens, or an object from tokens to ids"
    )


def _from_tokenizer(content: dict[str, Any], source: Path | str, tokenizer: Any) -> TokenTable:
    vocabulary = content["model"].get("vocab")
    added = content.get("added_tokens") or []
    if isinstance(vocabulary, list) and all(isinstance(entry, list) and entry for entry in vocabulary):
        ids = {str(entry[0]): token_id for token_id, entry in enumerate(vocabulary)}
    elif isinstance(vocabulary, dict) and all(map(_is_id, vocabulary.values())):
        ids = dict(vocabulary)
    else:
        raise EmbinitError(
            f"{source} is a tokenizer without a vocabulary (model type {content['model'].get('type')!r})"
        )
    specials = set(filter(looks_special, ids))
    if not isinstance(added, list) or not all(map(_is_added_token, added)):
        raise EmbinitError(f"{source} is damaged: an entry of its added_tokens lacks a content or an id")
    for entry in added:
        ids[entry["content"]] = entry["id"]
        if entry.get("special"):
            specials.add(entry["content"])
    if not ids:
        raise EmbinitError(f"{source} is a tokenizer without tokens")
    return TokenTable(_tokens_by_id(ids, source), frozenset(specials), tokenizer)


def _is_id(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_added_token(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("content"), str) and _is_id(entry.get("id"))


def _tokens_by_id(ids: dict[str, int], source: Path | str) -> list[str | None]:
    largest = max(ids.values())
    _check_largest_id(largest, len(ids), source)
    tokens: list[str | None] = [None] * (largest + 1)
    for token, token_id in ids.items():
        tokens[token_id] = token
    return tokens


def _check_largest_id(largest: int, tokens: int, source: Path | str) -> None:
    """Raise EmbinitError if an id is far beyond the number of tokens, because each id without a token is an empty row."""
    if largest > 2 * tokens + _LARGEST_GAP:
        raise EmbinitError(
            f"{source} is not a vocabulary: it has {tokens:,} tokens, and one of them has id {largest:,}"
        )


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file that holds an object, for example a config.json."""
    try:
        content = json.loads(read_whole(path, _LARGEST_FILE))
    except EmbinitError:
        raise
    except (ValueError, RecursionError) as error:
        raise EmbinitError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise EmbinitError(f"{path} does not hold a JSON object")
    return content


def _with_added_tokens(table: TokenTable, find_file: Callable[[str], Path | None]) -> TokenTable:
    """Return the table with the tokens of added_tokens.json, which were added after training."""
    path = find_file("added_tokens.json")
    if path is None:
        return table
    tokens = list(table.tokens)
    added = read_json_object(path)
    if not all(map(_is_id, added.values())):
        raise EmbinitError(f"{path} must map tokens to ids")
    _check_largest_id(max(added.values(), default=0), len(tokens) + len(added), path)
    for token, token_id in sorted(added.items(), key=lambda item: item[1]):
        tokens.extend([None] * (token_id + 1 - len(tokens)))
        tokens[token_id] = token
    return TokenTable(tokens, table.specials, table.tokenizer)


def _with_model_conventions(table: TokenTable, name: str, find_file: Callable[[str], Path | None]) -> TokenTable:
    """Return the table in the order of the model's ids, which may differ from SentencePiece's.

    XLM-R keeps fairseq's four special tokens in front, which moves every piece by one. T5 adds `<extra_id_99>` … `_0`.
    """
    path = find_file("config.json")
    model_type = str(read_json_object(path).get("model_type", "")) if path is not None else ""
    if name == "sentencepiece.bpe.model" and model_type in ("xlm-roberta", "xlm-roberta-xl", "mbart", "xlm_roberta"):
        tokens: list[str | None] = ["<s>", "<pad>", "</s>", "<unk>", *table.tokens[3:]]
        specials = {"<s>", "<pad>", "</s>", "<unk>"}
        if model_type.startswith("xlm"):
            tokens.append("<mask>")
            specials.add("<mask>")
        return TokenTable(tokens, table.specials | specials, table.tokenizer)
    if model_type in ("t5", "mt5", "umt5") and "<extra_id_0>" not in table.tokens:
        extra = [f"<extra_id_{i}>" for i in reversed(range(100))]
        return TokenTable([*table.tokens, *extra], table.specials | frozenset(extra), table.tokenizer)
    return table
