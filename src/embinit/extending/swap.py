"""A whole new tokenizer for a model: tokens that both have keep their rows, and the model's input format stays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from embinit.errors import EmbinitError
from embinit.export.resize import renumber
from embinit.extending.tokenizers import ExtendedTokenizer, backend, bare, largest_id, piece_ids, reloaded
from embinit.text.markers import add_marker, inner_pieces, looks_special, scheme_of, strip_marker

_ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
#: A role that a tokenizer lacks is played by another role.
_STAND_INS = {"cls": "bos", "bos": "cls", "sep": "eos", "eos": "sep"}
#: A text with one token for `TemplateProcessing`.
_PROBE = "a"


def replace_tokenizer(model: Any, old: Any, new: Any) -> ExtendedTokenizer:
    """Return a new tokenizer for a model, with the old row or the old pieces of each of its tokens.

    Parameters
    ----------
    model
        The model, which is not changed.
    old
        Its tokenizer.
    new
        The new tokenizer, which is not changed. The result puts the model's special tokens around a text.

    Returns
    -------
    ExtendedTokenizer
        The new tokenizer. Its `kept` maps shared tokens, whose marks and special roles are compared, to old rows.

    Raises
    ------
    EmbinitError
        If a tokenizer is not fast, the old one does not belong to the model, or the two are the same.
    """
    largest_id(old, len(model.get_input_embeddings().weight))
    if backend(old).get_vocab() == backend(new).get_vocab():
        raise EmbinitError("the new tokenizer has the tokens and ids of the old one, so there is nothing to do")
    check_padding(model, old, new)
    new, around = _with_format(old, new)
    vocabulary = backend(new).get_vocab(with_added_tokens=True)
    old_vocabulary = backend(old).get_vocab(with_added_tokens=True)
    roles = role_ids(old, new)
    specials = set(new.all_special_ids) | {i for token, i in vocabulary.items() if looks_special(token)}
    scheme, old_scheme = scheme_of(vocabulary), scheme_of(old_vocabulary)
    kept: dict[int, int] = {new_id: old_id for new_id, old_id in roles.items() if old_id is not None}
    texts: dict[int, tuple[str, bool]] = {}
    for token, token_id in sorted(vocabulary.items(), key=lambda item: item[1]):
        if token_id in kept:
            continue
        text, begins = (token, True) if token_id in specials else strip_marker(token, scheme)
        same = old_vocabulary.get(token if token_id in specials else add_marker(text, begins, old_scheme))
        if same is not None:
            kept[token_id] = same
        else:
            texts[token_id] = ("" if token_id in specials else text), begins
    if not set(kept) - set(roles):
        raise EmbinitError("the two tokenizers share no token, so no row could be kept; is it the right tokenizer?")
    pieces = _old_pieces(old, old_vocabulary, list(texts.values()))
    names = {token_id: token for token, token_id in vocabulary.items()}
    details = {
        "kept rows": f"{len(kept):,} of {len(vocabulary):,} tokens are in both tokenizers",
        "special tokens": ", ".join(f"{names[new_id]} as {_name(old, old_id)}" for new_id, old_id in roles.items()),
        **({"input format": around} if around else {}),
    }
    nothing = sum(not each for each in pieces)
    if nothing:
        details["no pieces"] = f"{nothing:,} tokens cannot be written with old pieces; their rows are draws"
    return ExtendedTokenizer(
        tokenizer=new,
        words=tuple(text if begins else "" for text, begins in texts.values()),
        stored=tuple(names[token_id] for token_id in texts),
        ids=tuple(texts),
        pieces=tuple(pieces),
        known=(),
        checked=0,
        changed=(),
        kept=kept,
        details=details,
    )


def _name(tokenizer: Any, token_id: int | None) -> str:
    return "a new token" if token_id is None else str(tokenizer.convert_ids_to_tokens(token_id))


def role_ids(old: Any, new: Any) -> dict[int, int | None]:
    """Return from the new tokenizer's special tokens to the old one's tokens with the same role; None if it has none."""
    ids: dict[int, int | None] = {}
    for role in _ROLES:
        own = getattr(new, f"{role}_token_id", None)
        if own is None or ids.get(own) is not None:
            continue
        names = (role, _STAND_INS.get(role, role))
        ids[own] = next((i for name in names if (i := getattr(old, f"{name}_token_id", None)) is not None), None)
    return ids


def setting_ids(old: Any, new: Any, kept: Mapping[int, int]) -> dict[int, int]:
    """Return from old ids to new ids, for the settings of a model (`pad_token_id`)."""
    ids = {old_id: new_id for new_id, old_id in reversed(list(kept.items()))}
    for role in reversed(_ROLES):
        names = (role, _STAND_INS.get(role, role))
        own = getattr(old, f"{role}_token_id", None)
        found = [i for name in names if (i := getattr(new, f"{name}_token_id", None)) is not None]
        if own is not None and found:
            ids[own] = found[0]
    return ids


def renumber_settings(model: Any, old: Any, extended: ExtendedTokenizer) -> None:
    """Set `pad_token_id` and similar settings of a model, and the padding row of its embedding, to the new ids."""
    renumber(model, setting_ids(old, extended.tokenizer, extended.kept or {}).get)
    layer = model.get_input_embeddings()
    if layer.padding_idx is not None:
        layer.padding_idx = model.config.pad_token_id


def check_padding(model: Any, old: Any, new: Any) -> None:
    """Raise EmbinitError if a model counts positions from its padding id, and the new tokenizer has another one."""
    positions = [module for name, module in model.named_modules() if name.endswith("position_embeddings")]
    if any(getattr(module, "padding_idx", None) is not None for module in positions):
        ids = [tokenizer.pad_token_id for tokenizer in (old, new)]
        if ids[0] != ids[1]:
            raise EmbinitError(
                f"{type(model).__name__} counts positions from its padding id {ids[0]}, but the new tokenizer has {ids[1]}; "
                f"give a tokenizer with the padding id {ids[0]}"
            )


def _old_pieces(old: Any, vocabulary: Mapping[str, int], texts: Sequence[tuple[str, bool]]) -> list[tuple[int, ...]]:
    """Return old pieces that make up each text; no pieces if the old tokenizer does not know the text."""
    scheme, unknown = scheme_of(vocabulary), getattr(old, "unk_token_id", None)
    # The split of a whole word is also the split of a part of a word that has no pieces inside words.
    split = piece_ids(old, [text for text, _ in texts])
    found = []
    for (text, begins), whole in zip(texts, split, strict=True):
        inner = () if begins else tuple(vocabulary[piece] for piece in inner_pieces(text, vocabulary, scheme))
        pieces = inner or whole
        found.append(() if unknown in pieces else pieces)
    return found


# ---------------------------------------------------------------- the model's input format


def _with_format(old: Any, new: Any) -> tuple[Any, str]:
    """Return a copy of the new tokenizer that puts the old one's special tokens around texts, and the format as text."""
    import tokenizers

    inner = bare(old)
    one, two = inner.encode(_PROBE), inner.encode(_PROBE, _PROBE)
    used = [token for token, special in zip(two.tokens, two.special_tokens_mask, strict=True) if special]
    content = json.loads(backend(new).to_str())
    copy = reloaded(new, content, keep_class=False)
    named: dict[str, str] = {}
    for token in used:
        role = next((role for role in _ROLES if getattr(old, f"{role}_token", None) == token), None)
        names = [] if role is None else [role, _STAND_INS.get(role, role)]
        own = next((value for name in names if (value := getattr(copy, f"{name}_token", None))), None)
        if own is None:
            own = token
            copy.add_special_tokens({f"{role}_token": token} if role else {"additional_special_tokens": [token]})
        named[token] = own
    ids = {own: copy.convert_tokens_to_ids(own) for own in named.values()}
    outer = backend(copy)
    outer.post_processor = tokenizers.processors.TemplateProcessing(
        single=_template(one, named), pair=_template(two, named), special_tokens=list(ids.items())
    )
    copy = reloaded(copy, json.loads(outer.to_str()), keep_class=False)
    return copy, " ".join(part.partition(":")[0].replace("$A", "…") for part in _template(one, named)) if used else ""


def _template(encoding: Any, named: Mapping[str, str]) -> list[str]:
    """Return an encoding as a template: `[CLS]:0 $A:0 [SEP]:0`."""
    parts = []
    for token, special, kind, sequence in zip(
        encoding.tokens, encoding.special_tokens_mask, encoding.type_ids, encoding.sequence_ids, strict=True
    ):
        part = f"{named[token]}:{kind}" if special else f"${'AB'[sequence or 0]}:{kind}"
        if special or part not in parts:
            parts.append(part)
    return parts
