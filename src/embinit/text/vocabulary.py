"""Vocabularies from text, from files, from lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import opened
from embinit.text.markers import looks_special, scheme_of
from embinit.text.token_files import TokenTable, read_tokens, token_table
from embinit.text.tokenizers import Tokenizer, subword
from embinit.types import Vocabulary

#: The paper's specials, in the order of PyTorch's tutorial (PAPER.md 3).
SPECIALS = ("<unk>", "<pad>", "<bos>", "<eos>")


def from_tokens(tokens: Iterable[str], specials: Iterable[str] = (), origin: str = "a list") -> Vocabulary:
    """Return a vocabulary of the given tokens, in their order; what looks special counts as special."""
    listed = tuple(tokens)
    others = [token for token in listed if not isinstance(token, str)]
    if others:
        raise EmbinitError(f"{origin} has {others[0]!r} ({type(others[0]).__name__}); tokens are texts")
    repeated = [token for token, count in Counter(listed).items() if count > 1]
    if repeated:
        how_many = f"{len(repeated)} repeated tokens, the first is" if len(repeated) > 1 else "a repeated token,"
        raise EmbinitError(f"{origin} has {how_many} {repeated[0]!r}")
    if not listed:
        raise EmbinitError(f"{origin} has no tokens")
    return Vocabulary(listed, None, frozenset(specials) | frozenset(filter(looks_special, listed)), origin)


def as_vocabulary(given: Vocabulary | Sequence[str] | Path) -> Vocabulary:
    """Return what a person gives as a vocabulary: one, a list of tokens, or the path of what `from_file` reads."""
    if isinstance(given, Vocabulary):
        return given
    if isinstance(given, str | Path):
        if not _exists(given):
            raise EmbinitError(
                f"a vocabulary is a list of tokens or a token file, and there is no file {str(given)[:80]!r}"
            )
        return from_file(Path(given))
    if not isinstance(given, Iterable):
        raise EmbinitError(f"a vocabulary is a list of tokens or a token file, not {type(given).__name__}")
    return from_tokens(given)


def _exists(path: str | Path) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # a text that no file can be called
        return False


def from_file(path: Path) -> Vocabulary:
    """Return the vocabulary of a token list, a tokenizer's file, or a checkpoint's folder, in id order.

    Ids without a token become `<unused-ID>` specials, so that rows keep their place.
    """
    if not path.exists():
        raise EmbinitError(f"no such vocabulary: {path}")
    if path.is_dir():
        table = token_table(lambda name: path / name if (path / name).is_file() else None, str(path))
    else:
        table = read_tokens(path)
    return from_table(table, str(path))


def from_table(table: TokenTable, origin: str) -> Vocabulary:
    """Return a vocabulary in id order, with the tokenizer's own way of splitting a word where it has one."""
    tokens = tuple(f"<unused-{i}>" if token is None else token for i, token in enumerate(table.tokens))
    holes = frozenset(token for token, name in zip(tokens, table.tokens, strict=True) if name is None)
    known = from_tokens(tokens, table.specials | holes, origin)
    split = None
    if table.tokenizer is not None and scheme_of(tokens) != "words":
        path = table.tokenizer
        loaded: list[Callable[[str], list[str]]] = []

        def split(word: str) -> list[str]:
            if not loaded:
                loaded.append(subword(path))
            return loaded[0](word)

    return Vocabulary(known.tokens, None, known.specials, origin, split)


def from_text(
    lines: Iterable[str],
    tokenize: Tokenizer,
    *,
    lower: bool = False,
    min_count: int = 1,
    specials: Sequence[str] = SPECIALS,
    origin: str = "text",
) -> Vocabulary:
    """Return the tokens seen at least `min_count` times, commonest first, after the specials (PAPER.md 3)."""
    counts: Counter[str] = Counter()
    for tokens in tokenize(line.lower() if lower else line for line in lines):
        counts.update(tokens)
    for special in specials:
        counts.pop(special, None)
    kept = sorted((token for token, count in counts.items() if count >= min_count), key=lambda t: (-counts[t], t))
    if not kept:
        raise EmbinitError(f"{origin} has no token that is seen {min_count} times or more")
    listed = (*specials, *kept)
    return Vocabulary(
        listed,
        np.array([counts[token] for token in listed], dtype=np.int64),
        frozenset(specials) | frozenset(filter(looks_special, kept)),
        origin,
    )


def read_lines(paths: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of text files, plain or compressed; an error names the first line that is no UTF-8."""
    for path in paths:
        if path.is_dir():
            raise EmbinitError(f"{path} is a folder; give the text files in it")
        if not path.is_file():
            raise EmbinitError(f"no such text file: {path}")
        with opened(path) as stream:
            for number, line in enumerate(stream, 1):
                try:
                    yield line.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    raise EmbinitError(f"{path}, line {number}: not UTF-8; convert the file first") from None
