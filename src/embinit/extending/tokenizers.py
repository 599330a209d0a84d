"""A tokenizer of transformers with new words: edited, loaded again, and compared with the old one on a list of words."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError
from embinit.export.resize import quiet
from embinit.extending.tokenizer_edits import insert_words
from embinit.extending.words import check_words
from embinit.text.markers import looks_special, scheme_of, strip_marker

#: Words on which the segmentation by the old and by the new tokenizer are compared.
_CHECKED = 20_000
#: A class that loads tokenizer.json as it is. Classes of single models rebuild parts of it.
_PLAIN_CLASS = "PreTrainedTokenizerFast"


@dataclass(frozen=True)
class ExtendedTokenizer:
    """A tokenizer with new words."""

    #: the new tokenizer, a transformers object; the old one is not changed
    tokenizer: Any
    #: the words; of a new tokenizer, an empty text for a token that cannot begin a word
    words: tuple[str, ...]
    #: the words as the tokenizer stores them: `Ġword`, `▁word`, `word`
    stored: tuple[str, ...]
    ids: tuple[int, ...]
    #: the old tokenizer's segmentation of each word, as ids
    pieces: tuple[tuple[int, ...], ...]
    #: words that the old tokenizer has already
    known: tuple[str, ...]
    #: the number of other words whose segmentation was compared
    checked: int
    #: other words that are segmented differently now
    changed: tuple[str, ...]
    #: from rows of the model to the old rows that they keep; None: every old row keeps its place
    kept: Mapping[int, int] | None = None
    #: what else happened, for the report
    details: Mapping[str, Any] = field(default_factory=dict)


def backend(tokenizer: Any) -> Any:
    """Return a fast tokenizer's `tokenizers.Tokenizer`, or raise EmbinitError."""
    inner = getattr(tokenizer, "backend_tokenizer", None)
    if inner is None or not hasattr(inner, "to_str"):
        raise EmbinitError(
            f"{type(tokenizer).__name__} is no fast tokenizer with a tokenizer.json; load it with "
            "transformers.AutoTokenizer.from_pretrained, or convert it to a fast tokenizer first"
        )
    return inner


def piece_ids(tokenizer: Any, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the ids of each text inside a sentence, without special tokens."""
    inner = bare(tokenizer)
    # A byte-level tokenizer writes the space before a word into the word's first piece.
    space = " " if _spaces_count(inner) else ""
    encodings = inner.encode_batch([space + text for text in texts], add_special_tokens=False)
    return [tuple(encoding.ids) for encoding in encodings]


def largest_id(tokenizer: Any, rows: int) -> int:
    """Return a tokenizer's largest id, or raise EmbinitError if a model with so many rows has no row for it."""
    largest = max(backend(tokenizer).get_vocab(with_added_tokens=True).values())
    if largest >= rows:
        raise EmbinitError(
            f"the tokenizer does not belong to the model: it has the id {largest:,}, and the model has {rows:,} rows"
        )
    return int(largest)


def bare(tokenizer: Any) -> Any:
    """Return a copy of the backend that neither cuts nor pads."""
    import tokenizers

    copy = tokenizers.Tokenizer.from_str(backend(tokenizer).to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy


def normalized(tokenizer: Any, word: str) -> str:
    """Return a word as the tokenizer normalizes it: in lower case, without accents."""
    normalizer = backend(tokenizer).normalizer
    return word if normalizer is None else str(normalizer.normalize_str(word)).strip("▁ ")


def _spaces_count(inner: Any) -> bool:
    return "ByteLevel" in json.dumps(json.loads(inner.to_str()).get("pre_tokenizer"))


def add_words(tokenizer: Any, words: Sequence[str], *, rows: int, skip_known: bool = False) -> ExtendedTokenizer:
    """Return a tokenizer that has each word as one token, and keeps the segmentation of all other words.

    Parameters
    ----------
    tokenizer
        A fast tokenizer of transformers. It is not changed.
    words
        The new words.
    rows
        The number of rows of the model.
    skip_known
        Whether words that are tokens already are left out; otherwise they are an error.

    Returns
    -------
    ExtendedTokenizer
        The new tokenizer with the ids of the words.

    Raises
    ------
    EmbinitError
        If the tokenizer is not fast or does not belong to the model, or a word cannot be added.
    """
    inner = backend(tokenizer)
    vocabulary = inner.get_vocab(with_added_tokens=True)
    largest = largest_id(tokenizer, rows)
    unknown = {vocabulary.get(str(getattr(tokenizer, "unk_token", None)))}

    def are_known(asked: Sequence[str]) -> list[bool]:
        return [len(ids) == 1 and ids[0] not in unknown for ids in piece_ids(tokenizer, asked)]

    def normalize(word: str) -> str:
        return normalized(tokenizer, word)

    listed, known = check_words(words, normalize=normalize, are_known=are_known, rows=rows, skip_known=skip_known)
    pieces = piece_ids(tokenizer, listed)
    nothing = [word for word, ids in zip(listed, pieces, strict=True) if not ids]
    if nothing:
        raise EmbinitError(f"the tokenizer drops {nothing[0]!r}; leave it out")
    inserted = insert_words(json.loads(inner.to_str()), listed, largest + 1)
    new = reloaded(tokenizer, inserted.content, keep_class=inserted.only_added)
    ids = tuple(range(largest + 1, largest + 1 + len(listed)))
    found = piece_ids(new, listed)
    missed = [word for word, new_id, got in zip(listed, ids, found, strict=True) if got != (new_id,)]
    if missed:
        raise EmbinitError(
            f"the tokenizer does not find {missed[0]!r} in text after it is added, because it splits it before it looks "
            "up tokens; leave it out"
        )
    checked, changed = compare(tokenizer, new, listed, dict(zip(ids, pieces, strict=True)))
    return ExtendedTokenizer(
        new, tuple(listed), inserted.stored, ids, tuple(pieces), tuple(known), checked, tuple(changed)
    )


def reloaded(tokenizer: Any, content: dict[str, Any], *, keep_class: bool) -> Any:
    """Return the tokenizer with another tokenizer.json: saved and loaded, so that it is the one that a user loads."""
    import transformers

    with tempfile.TemporaryDirectory() as folder, quiet():
        path = Path(folder)
        tokenizer.save_pretrained(path)
        (path / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        settings = json.loads((path / "tokenizer_config.json").read_text(encoding="utf-8"))
        if not keep_class:
            settings["tokenizer_class"] = _PLAIN_CLASS
            # The plain class would add token types, which GPT-2 reads as tokens.
            settings["model_input_names"] = list(tokenizer.model_input_names)
        (path / "tokenizer_config.json").write_text(json.dumps(settings, ensure_ascii=False), encoding="utf-8")
        try:
            return transformers.AutoTokenizer.from_pretrained(path, trust_remote_code=False)
        except Exception as error:  # the libraries raise many kinds
            raise EmbinitError(f"the extended tokenizer cannot be loaded: {str(error).partition(chr(10))[0]}") from None


def compare(old: Any, new: Any, added: Sequence[str], pieces: dict[int, tuple[int, ...]]) -> tuple[int, list[str]]:
    """Return the number of other words that were compared, and those that the new tokenizer segments differently.

    The list holds words of the old vocabulary, and words that begin or end with a new word. Each stands in a sentence, so
    that a change of its neighbours counts too. A word that contains a new word between signs (`x-ray`) may use it.
    """
    words = _other_words(old, added)
    sentences = [f"a {word}, {word}" for word in words]
    before, after = (
        [encoding.ids for encoding in bare(each).encode_batch(sentences, add_special_tokens=False)]
        for each in (old, new)
    )
    contained = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in added))
    changed = []
    for word, old_ids, new_ids in zip(words, before, after, strict=True):
        if contained.search(word):
            new_ids = [inner for new_id in new_ids for inner in pieces.get(new_id, (new_id,))]
        if old_ids != new_ids:
            changed.append(word)
    return len(words), changed


def _other_words(old: Any, added: Sequence[str]) -> list[str]:
    tokens = list(backend(old).get_vocab(with_added_tokens=False))
    scheme = scheme_of(tokens)
    known = [strip_marker(token, scheme)[0] for token in tokens if not looks_special(token)]
    step = -(-len(known) // _CHECKED) or 1
    derived = [form for word in added[:_CHECKED] for form in (f"{word}s", f"un{word}", f"{word}-like")]
    excluded = {*added, *(word.lower() for word in added)}
    listed = [word for word in (*known[::step], *derived) if word.strip() and word.isprintable()]
    return [word for word in dict.fromkeys(listed) if word.lower() not in excluded and word not in excluded]
