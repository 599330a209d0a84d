"""Tokens by id, from every layout that tokenizers are saved in."""

import json

import pytest

from embinit.text.sentencepiece import pieces
from embinit.text.token_files import read_tokens, token_table
from tests.refusal import refused

from ..sources.folders import sentencepiece_model

TOKENS = ["[PAD]", "[UNK]", "the", "##s"]
PIECES = [("<unk>", 2), ("<s>", 3), ("</s>", 3), (",", 1), ("▁the", 1), ("user", 4), ("<0x0A>", 6)]


def table(folder, source="here"):
    return token_table(lambda name: folder / name if (folder / name).is_file() else None, source)


def by_id(tokens=TOKENS):
    return {token: i for i, token in enumerate(tokens)}


LAYOUTS = {
    "vocab.txt": "\n".join(TOKENS),
    "vocab.txt with carriage returns": "\r\n".join(TOKENS) + "\r\n",
    "vocab.txt with a byte order mark": "\ufeff" + "\n".join(TOKENS),
    "vocab.json": json.dumps(by_id()),
    "vocab.json in another order": json.dumps(dict(reversed(by_id().items()))),
    "tokens.json": json.dumps(TOKENS),
    "tokens.json of a map": json.dumps({"tokens": TOKENS, "dim": 3}),
    "tokenizer.json": json.dumps({"model": {"type": "WordPiece", "vocab": by_id()}}),
    "tokenizer.json of Unigram": json.dumps({"model": {"type": "Unigram", "vocab": [[t, -1.0] for t in TOKENS]}}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_vocabulary_in_every_layout(layout, tmp_path):
    path = tmp_path / layout.partition(" ")[0]
    path.write_bytes(LAYOUTS[layout].encode())
    token_table = read_tokens(path)
    assert token_table.tokens == TOKENS
    assert token_table.specials == {"[PAD]", "[UNK]"}
    assert table(tmp_path).tokens == TOKENS


def test_lines_end_at_newlines_only(tmp_path):
    (tmp_path / "vocab.txt").write_text("a\u2028b\nc\u0085d\n\ne f\n", encoding="utf-8")
    assert read_tokens(tmp_path / "vocab.txt").tokens == ["a\u2028b", "c\u0085d", "", "e f"]


def test_invalid_utf8_is_kept_reversibly(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"a\ncaf\xe9\n")
    assert read_tokens(tmp_path / "vocab.txt").tokens == ["a", "caf\udce9"]


def test_json_keeps_newlines_and_leaves_holes(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "\n": 1, "b\r\n": 4}))
    assert read_tokens(tmp_path / "vocab.json").tokens == ["a", "\n", None, None, "b\r\n"]


def test_added_tokens_of_a_tokenizer(tmp_path):
    added = [{"id": 0, "content": "[PAD]", "special": True}, {"id": 6, "content": "new", "special": False}]
    content = {"added_tokens": [*added, {"id": 4, "content": "!sep!", "special": True}], "model": {"vocab": by_id()}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    token_table = read_tokens(tmp_path / "tokenizer.json")
    assert token_table.tokens == [*TOKENS, "!sep!", None, "new"]
    assert token_table.specials == {"[PAD]", "[UNK]", "!sep!"}
    assert token_table.tokenizer == tmp_path / "tokenizer.json"


def test_added_tokens_beside_a_list(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS))
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<late>": 6, "<early>": 4}))
    assert table(tmp_path).tokens == [*TOKENS, "<early>", None, "<late>"]
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<far>": 10**12}))
    with refused("added_tokens.json"):
        table(tmp_path)


def test_a_wordpiece_list_is_a_tokenizer_but_a_word_list_is_not(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS))
    assert read_tokens(tmp_path / "vocab.txt").tokenizer == tmp_path / "vocab.txt"
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    assert read_tokens(tmp_path / "vocab.txt").tokenizer is None


# ---------------------------------------------------------------- SentencePiece


def test_sentencepiece_in_its_own_order(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece_model(PIECES))
    model_table = table(tmp_path)
    assert model_table.tokens == [text for text, _ in PIECES]
    assert model_table.specials == {"<unk>", "<s>", "</s>", "<0x0A>"}


def test_xlm_r_moves_every_piece_by_one(tmp_path):
    (tmp_path / "sentencepiece.bpe.model").write_bytes(sentencepiece_model(PIECES))
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    model_table = table(tmp_path)
    assert model_table.tokens == ["<s>", "<pad>", "</s>", "<unk>", ",", "▁the", "user", "<0x0A>", "<mask>"]
    assert {"<s>", "<pad>", "</s>", "<unk>", "<mask>"} <= model_table.specials


@pytest.mark.parametrize("family", ["t5", "mt5", "umt5"])
def test_t5_adds_its_extra_ids_downwards(family, tmp_path):
    (tmp_path / "spiece.model").write_bytes(sentencepiece_model(PIECES))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    model_table = table(tmp_path)
    assert len(model_table.tokens) == len(PIECES) + 100
    assert model_table.tokens[len(PIECES)] == "<extra_id_99>"
    assert model_table.tokens[-1] == "<extra_id_0>"
    assert "<extra_id_50>" in model_table.specials


def test_t5_adds_no_extra_ids_twice(tmp_path):
    (tmp_path / "spiece.model").write_bytes(sentencepiece_model([*PIECES, ("<extra_id_0>", 4)]))
    (tmp_path / "config.json").write_text('{"model_type": "t5"}')
    assert len(table(tmp_path).tokens) == len(PIECES) + 1


def test_pieces_are_those_of_the_sentencepiece_package(tmp_path):
    library = pytest.importorskip("sentencepiece")
    (tmp_path / "text").write_text("the cat sat on the mat\n" * 50)
    library.SentencePieceTrainer.train(
        input=str(tmp_path / "text"), model_prefix=str(tmp_path / "m"), vocab_size=40, hard_vocab_limit=False
    )
    model = library.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    tokens, specials = pieces((tmp_path / "m.model").read_bytes(), "m")
    assert tokens == [model.id_to_piece(i) for i in range(model.get_piece_size())]
    assert specials == {model.id_to_piece(i) for i in range(len(tokens)) if model.is_control(i) or model.is_unknown(i)}


@pytest.mark.parametrize("size", [1, 2, 3, 10, -1])
def test_half_a_sentencepiece_model_is_an_error(size, tmp_path):
    whole = sentencepiece_model([("<unk>", 2)])
    (tmp_path / "m.model").write_bytes(whole[:size] if size < 10 else whole[:10])
    with refused("m.model"):
        read_tokens(tmp_path / "m.model")


# ---------------------------------------------------------------- errors

WRONG = {
    "empty": ("vocab.txt", b"", " is empty; expected tokens"),
    "blank": ("vocab.txt", b" \n\n", " is empty; expected tokens"),
    "binary": ("vocab.txt", b"\x7fELF\0\0\0", " is not a token list; expected "),
    "cut json": ("tokenizer.json", b'{"model": {"vocab": {"a": 0, "b', " is not a complete JSON file; expected tokens"),
    "list of numbers": ("tokens.json", b"[1, 2]", " is not a token list; expected "),
    "map to words": ("vocab.json", b'{"a": "b"}', " is not a token list; expected "),
    "negative ids": ("vocab.json", b'{"a": -1}', " is not a token list; expected "),
    "absurd ids": (
        "vocab.json",
        b'{"a": 99999999999}',
        " is not a vocabulary: it has 1 tokens, and one of them has id ",
    ),
    "ids with a gap of millions": (
        "vocab.json",
        b'{"the": 0, "cat": 9999999}',
        " is not a vocabulary: it has 2 tokens",
    ),
    "specials in a list": ("tokens.json", b'{"tokens": ["the"], "specials": [["x"]]}', " is damaged: its specials "),
    "specials that are none": ("tokens.json", b'{"tokens": ["the"], "specials": 3}', " is damaged: its specials "),
    "fractional ids": ("vocab.json", b'{"a": 0.5}', " is not a token list; expected "),
    "no vocabulary": (
        "tokenizer.json",
        b'{"model": {"type": "BPE"}}',
        " is a tokenizer without a vocabulary (model type 'BPE')",
    ),
    "empty vocabulary": ("tokenizer.json", b'{"model": {"vocab": {}}}', " is a tokenizer without tokens"),
    "odd vocabulary": (
        "tokenizer.json",
        b'{"model": {"vocab": {"a": "b"}}}',
        " is a tokenizer without a vocabulary",
    ),
    "odd entries": (
        "tokenizer.json",
        b'{"model": {"vocab": [1, 2]}}',
        " is a tokenizer without a vocabulary",
    ),
    "odd added": (
        "tokenizer.json",
        b'{"added_tokens": [{"id": 1}], "model": {"vocab": {"a": 0}}}',
        " is damaged: an entry of its added_tokens lacks a content or an id",
    ),
}


@pytest.mark.parametrize(("name", "data", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_an_error_that_names_it(name, data, message, tmp_path):
    (tmp_path / name).write_bytes(data)
    with refused(f"{tmp_path / name}{message}"):
        read_tokens(tmp_path / name)


def test_an_added_token_with_an_id_far_beyond_the_others_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("the\ncat\n")
    (tmp_path / "added_tokens.json").write_text('{"dog": 9999999}')
    with refused(tmp_path / "added_tokens.json", "9,999,999"):
        table(tmp_path)


def test_a_folder_without_a_list_says_what_was_looked_for(tmp_path):
    with refused("here has no token list", "tokenizer.json, vocab.txt"):
        table(tmp_path)
    with refused(tmp_path / "absent"):
        read_tokens(tmp_path / "absent")
