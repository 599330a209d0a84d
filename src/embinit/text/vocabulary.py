"""Vocabularies from text, files and lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import open_unpacked
from embinit.hub import NoSuchFile, download, is_id, is_tokenizer
from embinit.text.markers import looks_special, scheme_of
from embinit.text.token_files import TokenTable, read_tokens, token_table, tokenizer_name, tokenizer_tokens
from embinit.text.tokenizers import Tokenizer, subword
from embinit.types import Vocabulary

#: The paper's special tokens, in the order of PyTorch's tutorial (PAPER.md 3).
SPECIALS = ("<unk>", "<pad>", "<bos>", "<eos>")
#: Of a text. The corpus text8 is one line of 100 MB.
LONGEST_LINE = 256 << 20


def from_tokens(tokens: Iterable[str], specials: Iterable[str] = (), origin: str = "a list") -> Vocabulary:
    """Return a vocabulary of these tokens in this order. Tokens that look special (`<pad>`) count as special."""
    listed = tuple(tokens)
    name = f"the vocabulary ({origin})"
    not_strings = [token for token in listed if not isinstance(token, str)]
    if not_strings:
        raise EmbinitError(f"{name} has {not_strings[0]!r} ({type(not_strings[0]).__name__}); tokens must be strings")
    repeated = [token for token, count in Counter(listed).items() if count > 1]
    if repeated:
        count = f"{len(repeated):,} repeated tokens, the first of them" if len(repeated) > 1 else "a repeated token:"
        raise EmbinitError(f"{name} has {count} {repeated[0]!r}; give each token once")
    if not listed:
        raise EmbinitError(f"{name} has no tokens")
    return Vocabulary(listed, None, frozenset(specials) | frozenset(filter(looks_special, listed)), origin)


def as_vocabulary(tokens: Any) -> Vocabulary:
    """Return the vocabulary of a tokenizer object, a list of tokens, a path that `from_file` reads, or a hub id."""
    if isinstance(tokens, Vocabulary):
        return tokens
    if is_tokenizer(tokens):
        return from_table(tokenizer_tokens(tokens), tokenizer_name(tokens))
    if isinstance(tokens, str | Path):
        if not _exists(tokens) and not is_id(str(tokens)):
            raise EmbinitError(
                f"a vocabulary is a list of tokens or a token file, but there is no file {str(tokens)[:80]!r}"
            )
        return from_file(Path(tokens))
    if isinstance(tokens, Mapping):
        raise EmbinitError(
            "a vocabulary is a list of tokens in row order, not a mapping; give sorted(ids, key=ids.get)"
        )
    if isinstance(tokens, set | frozenset):
        raise EmbinitError(
            f"a vocabulary is a list of tokens in row order, but a {type(tokens).__name__} has no order; give a list"
        )
    if not isinstance(tokens, Iterable):
        raise EmbinitError(
            f"a vocabulary is a tokenizer, a list of tokens or a token file, not {type(tokens).__name__}"
        )
    return from_tokens(tokens)


def _exists(path: str | Path) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # the text cannot be a file name
        return False


def from_file(path: Path) -> Vocabulary:
    """Return the vocabulary of a token list, a tokenizer's file, a checkpoint's folder or a hub id, in id order.

    An id without a token becomes a special token `<unused-ID>`, so that each row keeps its place.
    """
    if not path.exists():
        if not is_id(str(path)):
            raise EmbinitError(f"no such vocabulary: {path}")
        table = _hub_tokens(str(path))
    elif path.is_dir():
        table = token_table(lambda name: path / name if (path / name).is_file() else None, str(path))
    else:
        table = read_tokens(path)
    return from_table(table, str(path))


def unused_name(token_id: int) -> str:
    """Return the special token that stands for an id without a token."""
    return f"<unused-{token_id}>"


def _hub_tokens(spec: str) -> TokenTable:
    """Return the tokens of a model on the hub."""
    repository, _, revision = spec.partition("@")

    def find_file(name: str) -> Path | None:
        try:
            return download(repository, name, revision or None, "model")
        except NoSuchFile:
            return None

    return token_table(find_file, spec)


def from_table(table: TokenTable, origin: str) -> Vocabulary:
    """Return a vocabulary in id order, with the tokenizer's split of words into pieces if the tokens are sub-words."""
    tokens = tuple(unused_name(i) if token is None else token for i, token in enumerate(table.tokens))
    unused = frozenset(name for name, token in zip(tokens, table.tokens, strict=True) if token is None)
    vocabulary = from_tokens(tokens, table.specials | unused, origin)
    split = None
    if table.tokenizer is not None and scheme_of(tokens) != "words":
        load_split = cache(lambda: subword(table.tokenizer))  # the tokenizer is loaded when the first word is split

        def split(word: str) -> list[str]:
            return load_split()(word)

    return Vocabulary(vocabulary.tokens, None, vocabulary.specials, origin, split)


def from_text(
    lines: Iterable[str],
    tokenize: Tokenizer,
    *,
    lower: bool = False,
    min_count: int = 1,
    specials: Sequence[str] = SPECIALS,
    origin: str = "text",
) -> Vocabulary:
    """Return the special tokens, then all tokens that occur at least `min_count` times, most frequent first (PAPER.md 3).

    Parameters
    ----------
    lines
        Lines of text.
    tokenize
        A function from lines to lists of tokens, for example `tokenizer("spacy:en")`.
    lower
        Whether to lower-case the text first.
    min_count
        The number of occurrences below which a token is left out.
    specials
        Special tokens, which come first.
    origin
        The name of the text in messages.

    Returns
    -------
    Vocabulary
        The tokens with their counts.

    Raises
    ------
    EmbinitError
        If no token occurs often enough.
    """
    counts: Counter[str] = Counter()
    for tokens in tokenize(line.lower() if lower else line for line in lines):
        counts.update(tokens)
    for special in specials:
        counts.pop(special, None)
    kept = sorted((token for token, count in counts.items() if count >= min_count), key=lambda t: (-counts[t], t))
    if not kept:
        often = f" that occurs {min_count} times or more" if counts else ""
        raise EmbinitError(f"{origin} has no token{often}")
    listed = (*specials, *kept)
    return Vocabulary(
        listed,
        np.array([counts[token] for token in listed], dtype=np.int64),
        frozenset(specials) | frozenset(filter(looks_special, kept)),
        origin,
    )


def numbered_lines(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each line; a line that would fill the memory is an error."""
    for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE + 1), b""), 1):
        if len(line) > LONGEST_LINE:
            raise EmbinitError(
                f"{name}, line {number} is longer than {LONGEST_LINE >> 20} MB; put each sentence on its own line"
            )
        yield number, line


def read_lines(paths: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of text files, plain or compressed. An error names the first line that is not UTF-8."""
    for path in paths:
        if path.is_dir():
            raise EmbinitError(f"{path} is a folder; give the text files in it")
        if not path.is_file():
            names = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
            near = get_close_matches(path.name, names, n=1)
            raise EmbinitError(
                f"no such text file: {path}" + (f"; did you mean {path.with_name(near[0])}?" if near else "")
            )
        with open_unpacked(path) as stream:
            for number, line in numbered_lines(stream, str(path)):
                try:
                    yield line.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    raise EmbinitError(f"{path}, line {number} is not UTF-8; convert the file first") from None
