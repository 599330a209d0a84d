"""Tokenizer objects of transformers and tokenizers: they count exactly as the folder that they are saved to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embinit
from embinit.text.tokenizers import tokenizer as splitter_of
from embinit.text.vocabulary import as_vocabulary
from tests.refusal import refused
from tests.sources.servers import Served, serving

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

#: Words that the vectors have; all but the first are split into pieces.
WORDS = ["walk", "walking", "walked", "talking", "Ünal"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "walk", "##ing", "##ed", "talk", "##al", "Ün", "never"]


def wordpiece() -> Any:
    """A tokenizer that pads, cuts, and marks a token as special that does not look like one."""
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({token: i for i, token in enumerate(PIECES)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "never"])
    made.enable_padding(length=16)
    made.enable_truncation(2)
    return made


def byte_level() -> Any:
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=26, special_tokens=["<|end|>"], show_progress=False)
    made.train_from_iterator([" ".join(WORDS)] * 9, trainer)
    return made


def fast(backend: Any) -> Any:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]")


MADE = {"WordPiece": wordpiece, "byte-level BPE": byte_level}


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    rows = np.random.default_rng(0).normal(size=(len(WORDS), 6))
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, rows, strict=True)))
    return path


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("library", ["tokenizers", "transformers"])
def test_an_object_aligns_like_its_folder_and_is_not_changed(
    kind: str, library: str, vectors: Path, tmp_path: Path
) -> None:
    made = MADE[kind]() if library == "tokenizers" else fast(MADE[kind]())
    backend = made if library == "tokenizers" else made.backend_tokenizer
    before, folder = backend.to_str(), tmp_path / "saved"
    if library == "tokenizers":
        folder.mkdir()
        made.save(str(folder / "tokenizer.json"))
    else:
        made.save_pretrained(folder)
    ours, theirs = embinit.align(vectors, made), embinit.align(vectors, folder)
    assert ours.vocabulary.tokens == theirs.vocabulary.tokens
    assert ours.vocabulary.specials == theirs.vocabulary.specials
    assert ours.kinds == theirs.kinds
    assert ours.vectors.tobytes() == theirs.vectors.tobytes()
    assert ours.matches()["composed"] > 0
    assert ours.notes == ()
    assert backend.to_str() == before


def test_a_bare_list_of_pieces_finds_less_and_says_how_to_find_more(vectors: Path) -> None:
    listed, whole = embinit.align(vectors, PIECES), embinit.align(vectors, wordpiece())
    assert listed.matches()["composed"] == 0
    assert listed.found.sum() < whole.found.sum()
    (note,) = listed.notes
    assert f"{listed.matches()['missing']} missing tokens" in note
    assert "give the tokenizer" in note
    assert embinit.diagnose(listed).warnings == (note,)
    assert note in embinit.diagnose(listed).as_dict()["warnings"]
    assert embinit.align(vectors, ["walk", "absent"]).notes == ()


def test_a_tokenizer_in_python_alone_gives_its_tokens_and_its_split(vectors: Path) -> None:
    class Slow(transformers.PreTrainedTokenizerBase):
        all_special_tokens = ("[PAD]",)

        def __init__(self) -> None:
            pass

        name_or_path = ""

        def get_vocab(self) -> dict[str, int]:
            return {"[PAD]": 0, "walk": 1, "##ing": 2, "##ed": 3}

        def tokenize(self, text: str) -> list[str]:  # type: ignore[override]
            return ["walk", f"##{text[4:]}"] if text in ("walking", "walked") else [text]

    aligned = embinit.align(vectors, Slow())
    assert aligned.kinds == ("special", "exact", "composed", "composed")


def test_a_tokenizer_object_splits_lines() -> None:
    assert list(splitter_of(wordpiece())(["walking talked"])) == [["walk", "##ing", "talk", "##ed"]]


def test_a_model_and_its_tokenizer_are_a_source() -> None:
    config = transformers.BertConfig(
        vocab_size=len(PIECES) + 2, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    model = transformers.BertModel(config)
    rows = model.get_input_embeddings().weight.detach().numpy()
    for pair in ((model, wordpiece()), (model.get_input_embeddings(), fast(wordpiece()))):
        read = embinit.load(pair)
        assert list(read.tokens) == PIECES
        assert read.vectors.tobytes() == rows[: len(PIECES)].tobytes()
        assert {"[CLS]", "never"} <= read.specials


def test_a_vocabulary_and_a_host_come_by_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    config = b'{"model_type": "llama", "hidden_size": 12}'
    files = {"org/pieces/tokenizer.json": wordpiece().to_str().encode(), "org/pieces/config.json": config}
    with serving(Served(files=files)) as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        url = served.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        assert as_vocabulary("org/pieces").tokens == tuple(PIECES)
        host = embinit.host("org/pieces")
    assert (host.name, host.positions, host.dim) == ("pieces (llama)", "rotary", 12)


def test_a_number_is_no_vocabulary() -> None:
    with refused("a tokenizer, a list of tokens or a token file, not int"):
        as_vocabulary(5)
