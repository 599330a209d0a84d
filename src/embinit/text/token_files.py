"""The tokens of a vocabulary file, by id: whatever layout a tokenizer was saved in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError
from embinit.text import sentencepiece
from embinit.text.markers import looks_special

#: Endings of SentencePiece models, and what they are called in a checkpoint's folder.
SENTENCEPIECE_ENDINGS = (".model", ".spm")
SENTENCEPIECE_FILES = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
_LARGEST_ID = 10_000_000
#: Files of a checkpoint folder that hold its tokens, best first.
FOLDER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    *SENTENCEPIECE_FILES,
    "tokens.json",
)


@dataclass(frozen=True)
class TokenTable:
    """Tokens by id; None where an id has no token."""

    tokens: list[str | None]
    specials: frozenset[str]
    #: the whole tokenizer, by which missing words are composed: a tokenizer.json, a WordPiece list, a SentencePiece model
    tokenizer: Path | None = None


def token_table(read: Callable[[str], Path | None], source: str) -> TokenTable:
    """Return the tokens of a checkpoint, whose files `read` finds (None where there is no such file)."""
    for name in FOLDER_FILES:
        path = read(name)
        if path is None:
            continue
        table = read_tokens(path)
        if name.endswith(".model"):
            table = _with_model_conventions(table, name, read)
        return _with_added(table, read)
    raise EmbinitError(f"{source} has no token list; looked for {', '.join(FOLDER_FILES)}")


def read_tokens(path: Path) -> TokenTable:
    """Return the tokens of one file: tokenizer.json, a JSON list or map, SentencePiece, or a token a line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EmbinitError(f"cannot read {path}: {error.strerror or error}") from None
    if not data.strip():
        raise EmbinitError(f"{path} is empty; expected tokens")
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            return _from_json(json.loads(data), path)
        except EmbinitError:
            raise
        except (ValueError, RecursionError):  # a list of lines may begin with `[PAD]`
            if path.suffix == ".json":
                raise EmbinitError(f"{path} is no whole JSON file; expected tokens") from None
    if data[:1] == b"\n" and path.suffix in SENTENCEPIECE_ENDINGS:
        tokens, specials = sentencepiece.pieces(data, str(path))
        return TokenTable(list(tokens), specials, path)
    if b"\0" in data[:4096]:
        raise EmbinitError(f"{path} is no token list: expected tokenizer.json, SentencePiece, JSON or a token a line")
    return _from_lines(data, path)


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
        declared = content.get("specials")
        return replace(table, specials=table.specials | frozenset(declared if isinstance(declared, list) else ()))
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        return _from_tokenizer(content, path)
    if isinstance(content, dict) and content and all(map(_is_id, content.values())):
        return TokenTable(_by_id(content, path), frozenset(filter(looks_special, content)))
    raise EmbinitError(f"{path} is no token list: expected a tokenizer.json, a list of tokens or a map to ids")


def _from_tokenizer(content: dict[str, Any], path: Path) -> TokenTable:
    vocabulary = content["model"].get("vocab")
    added = content.get("added_tokens") or []
    if isinstance(vocabulary, list) and all(isinstance(entry, list) and entry for entry in vocabulary):
        ids = {str(entry[0]): i for i, entry in enumerate(vocabulary)}
    elif isinstance(vocabulary, dict) and all(map(_is_id, vocabulary.values())):
        ids = dict(vocabulary)
    else:
        raise EmbinitError(f"{path} is a tokenizer without a vocabulary (model type {content['model'].get('type')!r})")
    specials = set(filter(looks_special, ids))
    if not isinstance(added, list) or not all(map(_is_added, added)):
        raise EmbinitError(f"{path} is a damaged tokenizer: its added tokens are not written as contents with ids")
    for entry in added:
        ids[entry["content"]] = entry["id"]
        if entry.get("special"):
            specials.add(entry["content"])
    if not ids:
        raise EmbinitError(f"{path} is a tokenizer without tokens")
    return TokenTable(_by_id(ids, path), frozenset(specials), path)


def _is_id(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_added(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("content"), str) and _is_id(entry.get("id"))


def _by_id(ids: dict[str, int], path: Path) -> list[str | None]:
    if max(ids.values()) > _LARGEST_ID:
        raise EmbinitError(f"{path}: a token has id {max(ids.values())}; that is no vocabulary")
    tokens: list[str | None] = [None] * (max(ids.values()) + 1)
    for token, i in ids.items():
        tokens[i] = token
    return tokens


def read_map(path: Path) -> dict[str, Any]:
    """Return a JSON file that holds a map, as configurations do."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        raise EmbinitError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise EmbinitError(f"{path} holds no JSON map")
    return content


def _with_added(table: TokenTable, read: Callable[[str], Path | None]) -> TokenTable:
    """Return the table with the tokens that were added after training."""
    path = read("added_tokens.json")
    if path is None:
        return table
    tokens = list(table.tokens)
    added = read_map(path)
    if not all(_is_id(i) and i <= _LARGEST_ID for i in added.values()):
        raise EmbinitError(f"{path} is no map from tokens to ids")
    for token, i in sorted(added.items(), key=lambda item: item[1]):
        tokens.extend([None] * (i + 1 - len(tokens)))
        tokens[i] = token
    return TokenTable(tokens, table.specials, table.tokenizer)


def _with_model_conventions(table: TokenTable, name: str, read: Callable[[str], Path | None]) -> TokenTable:
    """Return the table as the model numbers it, where that is not as SentencePiece does.

    XLM-R keeps fairseq's four specials in front and so moves every piece by one; T5 adds `<extra_id_99>` … `_0`.
    """
    path = read("config.json")
    kind = str(read_map(path).get("model_type", "")) if path is not None else ""
    if name == "sentencepiece.bpe.model" and kind in ("xlm-roberta", "xlm-roberta-xl", "mbart", "xlm_roberta"):
        tokens: list[str | None] = ["<s>", "<pad>", "</s>", "<unk>", *table.tokens[3:]]
        specials = {"<s>", "<pad>", "</s>", "<unk>"}
        if kind.startswith("xlm"):
            tokens.append("<mask>")
            specials.add("<mask>")
        return TokenTable(tokens, table.specials | specials, table.tokenizer)
    if kind in ("t5", "mt5", "umt5") and "<extra_id_0>" not in table.tokens:
        extra = [f"<extra_id_{i}>" for i in reversed(range(100))]
        return TokenTable([*table.tokens, *extra], table.specials | frozenset(extra), table.tokenizer)
    return table
