"""New words become single tokens, and every other word is segmented as before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from embinit.extending.tokenizer_edits import trie_pattern
from embinit.extending.tokenizers import add_words
from tests.extending.made import KINDS, NEW, tokenizer_of, transformers, words
from tests.refusal import refused

ROWS = 5000


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def test_a_new_word_is_one_token_and_is_decoded_with_its_space(kind: str) -> None:
    old = tokenizer_of(kind)
    extended = add_words(old, NEW, rows=ROWS)
    assert extended.words == NEW
    assert extended.ids == tuple(range(len(old), len(old) + len(NEW)))
    for word, new_id, pieces in zip(NEW, extended.ids, extended.pieces, strict=True):
        assert len(pieces) > 1
        text = f"a red {word} , and {word}."
        assert ids(extended.tokenizer, text).count(new_id) == 2, word
        expected = [new_id] if word.isalpha() else []
        assert [i for i in ids(extended.tokenizer, f"a {word}s un{word} {word}") if i in extended.ids] == [
            *expected, *([] if expected else [new_id])
        ]  # fmt: skip
        decoded = extended.tokenizer.decode(ids(extended.tokenizer, f"a red {word} bird"))
        assert decoded == f"a red {word} bird", word


def test_every_other_word_of_a_large_list_is_segmented_as_before(kind: str) -> None:
    old = tokenizer_of(kind)
    extended = add_words(old, NEW, rows=ROWS)
    assert len(words()) > 5000
    new = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in NEW))
    others = [word for word in (*words(), *(f"{word}s" for word in NEW), "ungraphene") if not new.search(word)]
    changed = [word for word in others if ids(old, f"a {word}, {word}") != ids(extended.tokenizer, f"a {word}, {word}")]
    assert changed == []
    assert extended.changed == ()
    assert extended.checked > 300


def test_the_neighbours_of_a_new_word_keep_their_pieces(kind: str) -> None:
    old = tokenizer_of(kind)
    extended = add_words(old, NEW, rows=ROWS)
    pieces = dict(zip(extended.ids, extended.pieces, strict=True))
    # BPE over whole sentences may merge the end of a word with the sign after it.
    space = " " if kind == "sentence BPE" else ""
    for word in NEW:
        for text in (f"the {word}{space}, a dog", f"a dog sees the {word}", f"{NEW[0]} {word}{space}? yes {word} 's"):
            expanded = [old_id for new_id in ids(extended.tokenizer, text) for old_id in pieces.get(new_id, (new_id,))]
            assert expanded == ids(old, text), text


def test_a_saved_tokenizer_is_loaded_alike(kind: str, tmp_path: Path) -> None:
    extended = add_words(tokenizer_of(kind), NEW, rows=ROWS)
    extended.tokenizer.save_pretrained(tmp_path)
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
    text = "a red graphene , graphenes and planetarium."
    assert ids(loaded, text) == ids(extended.tokenizer, text)
    assert loaded.pad_token == "<pad>"
    assert loaded.model_input_names == ["input_ids", "attention_mask"]
    assert len(loaded) == len(extended.tokenizer)


@pytest.mark.parametrize("name", ["GPT2Tokenizer", "Qwen2Tokenizer"])
def test_a_class_that_builds_parts_of_the_tokenizer_anew_is_replaced(name: str, tmp_path: Path) -> None:
    tokenizer_of("byte-level BPE").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**config, "tokenizer_class": name}))
    old = transformers.AutoTokenizer.from_pretrained(tmp_path)
    extended = add_words(old, ["graphene"], rows=ROWS)
    extended.tokenizer.save_pretrained(tmp_path / "again")
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    assert ids(loaded, "a graphene").count(extended.ids[0]) == 1
    assert loaded.model_input_names == old.model_input_names


def test_ids_of_tokens_that_were_added_before_stay(kind: str) -> None:
    old = tokenizer_of(kind)
    old.add_tokens(["<user>"], special_tokens=True)
    extended = add_words(old, ["graphene"], rows=ROWS)
    assert extended.tokenizer.convert_tokens_to_ids("<user>") == len(old) - 1
    assert extended.ids == (len(old),)
    assert ids(extended.tokenizer, "<user> a graphene")[0] == len(old) - 1


def test_an_uncased_tokenizer_gets_the_lower_case_spelling() -> None:
    extended = add_words(tokenizer_of("WordPiece"), ["Graphene"], rows=ROWS)
    assert extended.words == ("graphene",)
    assert ids(extended.tokenizer, "GRAPHENE") == list(extended.ids)


@pytest.mark.parametrize(
    ("tokens", "values"),
    [
        ([], ["no tokens"]),
        ("graphene", ["list of words"]),
        (["graphene", " "], ["token 2", "empty"]),
        (["new york", "graphene"], ["'new york'", "spaces"]),
        (["graphene", "graphene"], ["'graphene'", "twice"]),
        (["graphene", "GRAPHENE"], ["'GRAPHENE'", "normalizes"]),
        (["graphene", "dog"], ["'dog'", "exists already", "--skip-known"]),
        (["graphene", "Dög", "a"], ["'Dög' normalized to 'dog', 'a'", "exist already"]),
        (["graphene", "\u0301"], ["normalizes", "nothing"]),
        ([f"word{i}" for i in range(ROWS + 1)], ["5,001", "5,000 rows"]),
    ],
)
def test_wrong_tokens_are_refused_in_one_sentence(tokens: Any, values: list[str]) -> None:
    with refused(*values):
        add_words(tokenizer_of("WordPiece"), tokens, rows=ROWS)


def test_known_tokens_can_be_skipped() -> None:
    extended = add_words(tokenizer_of("WordPiece"), ["graphene", "dog"], rows=ROWS, skip_known=True)
    assert (extended.words, extended.known) == (("graphene",), ("dog",))
    with refused("nothing to add"):
        add_words(tokenizer_of("WordPiece"), ["dog"], rows=ROWS, skip_known=True)


def test_a_tokenizer_of_another_model_or_without_a_tokenizer_json_is_refused() -> None:
    with refused("does not belong to the model", "100 rows"):
        add_words(tokenizer_of("WordPiece"), NEW, rows=100)
    with refused("no fast tokenizer", "object"):
        add_words(object(), NEW, rows=100)


def test_a_trie_pattern_matches_its_words_and_nothing_else() -> None:
    listed = ["car", "cart", "carts", "a.b", "a+b", "dog"]
    pattern = re.compile(trie_pattern(listed))
    assert all(pattern.fullmatch(word) for word in listed)
    assert not any(pattern.fullmatch(word) for word in ("ca", "axb", "do", "cartss", ""))
    assert pattern.match("carts")[0] == "carts"  # type: ignore[index]
