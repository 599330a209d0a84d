"""Tokenizers by name, and what is said where one is not there."""

import importlib

import pytest
import sentencepiece
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from embinit.errors import MissingExtra
from embinit.text.token_files import read_tokens
from embinit.text.tokenizers import subword, tokenizer
from tests.refusal import refused

from ..sources.folders import sentencepiece_model

WORDPIECE = ["[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "sat"]


@pytest.fixture
def saved(tmp_path):
    """A tokenizer.json that pads, cuts and adds specials, none of which belongs into a word's pieces."""
    made = Tokenizer(models.WordPiece({token: i for i, token in enumerate(WORDPIECE)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    made.enable_padding(length=16)
    made.enable_truncation(2)
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def split(spec: str, *lines: str) -> list[list[str]]:
    return list(tokenizer(spec)(lines))


def test_whitespace():
    assert split("whitespace", " the cat,  sat\n", "", "a\u00a0b\tc") == [["the", "cat,", "sat"], [], ["a", "b", "c"]]


def test_spacy():
    assert split("spacy:en", "Don't stop.") == [["Do", "n't", "stop", "."]]
    assert split("spacy:de", "z.B. heute.") == [["z.B.", "heute", "."]]


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_tokenizer_json(what, saved):
    path = saved if what == "file" else saved.parent
    assert split(str(path), "the cats sat", "dog") == [["the", "cat", "##s", "sat"], ["[UNK]"]]
    assert subword(path)("the cats sat") == ["the", "cat", "##s", "sat"]


def test_a_wordpiece_list(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDPIECE))
    assert subword(tmp_path)("The cats") == ["the", "cat", "##s"]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert subword(tmp_path)("The cats") == ["[UNK]", "cat", "##s"]
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "vocab.txt").write_text("\n".join([*WORDPIECE, "The"]))
    assert subword(tmp_path / "vocab.txt")("The cats") == ["The", "cat", "##s"]


# ---------------------------------------------------------------- SentencePiece

TEXT = ["the cat sat on the mat", "Die Katzen saßen auf der Matte.", "a  b ", "", "日 ﬁ Ⅳ", "x\u00a0y"]


@pytest.fixture(scope="module", params=["unigram", "bpe", "bytes"])
def trained(request, tmp_path_factory):
    """A folder with a SentencePiece model alone, as mT5's is, and the library's own view of it."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "text").write_text("".join(f"{line}\n" for line in TEXT[:2] * 40))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / "spiece"), vocab_size=300, hard_vocab_limit=False,
        model_type="bpe" if request.param == "bpe" else "unigram", byte_fallback=request.param == "bytes",
        minloglevel=2,
    )  # fmt: skip
    return folder, sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_sentencepiece_model_splits_as_its_own_library_does(what, trained):
    folder, library = trained
    found = split(str(folder / "spiece.model" if what == "file" else folder), *TEXT)
    assert found == [[library.id_to_piece(i) for i in library.encode(line)] for line in TEXT]
    assert found[0][0].startswith("▁")
    assert found[3] == []
    assert subword(folder)(TEXT[1]) == found[1]


def test_what_a_sentencepiece_model_does_not_know_is_one_token_of_its_vocabulary(trained):
    folder, library = trained
    tokens = set(read_tokens(folder / "spiece.model").tokens)
    assert all(piece in tokens for line in split(str(folder), *TEXT) for piece in line)
    unknown = subword(folder)("日")
    assert unknown == (["▁", "<0xE6>", "<0x97>", "<0xA5>"] if library.is_byte(library["<0xE6>"]) else ["▁", "<unk>"])


def test_a_folder_with_both_is_read_by_its_tokenizer_json(trained, saved, tmp_path):
    folder, _ = trained
    (tmp_path / "spiece.model").write_bytes((folder / "spiece.model").read_bytes())
    assert subword(tmp_path)("the cats") == ["the", "cat", "##s"]
    saved.unlink()
    assert subword(tmp_path)("the cats") == subword(folder)("the cats")


def test_a_sentencepiece_model_of_any_name_in_a_folder(trained, tmp_path):
    folder, _ = trained
    (tmp_path / "source.spm").write_bytes((folder / "spiece.model").read_bytes())
    assert subword(tmp_path)("the cats") == subword(folder)("the cats")


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("spec", "close"), [("whitespaces", "whitespace"), ("spacy-de", "spacy:de"), ("spacey", "spacy:en")]
)
def test_an_unknown_tokenizer_gives_a_close_name(spec, close):
    with refused(f"unknown tokenizer '{spec}'; did you mean '{close}'?"):
        tokenizer(spec)


@pytest.mark.parametrize("spec", ["folder/spiece.model", "some/where/deep", "/nowhere", "./model.json"])
def test_a_path_that_is_not_there_is_named(spec):
    with refused(f"there is no tokenizer file or folder {spec}"):
        tokenizer(spec)


def test_more_names_of_the_caller_are_listed():
    with refused("one of bytes, characters, spacy, spacy:cs"):
        tokenizer("nope", ("spacy",))
    with refused("one of bytes, characters, spacy:cs"):
        tokenizer("nope")


def test_spacy_needs_a_language():
    with refused("spacy:en"):
        tokenizer("spacy")


@pytest.mark.parametrize("data", [b"", b"\n", b"no model", sentencepiece_model([("▁the", 1)])[:-1]])
def test_a_file_that_is_no_sentencepiece_model(data, tmp_path, capfd):
    (tmp_path / "spiece.model").write_bytes(data)
    with refused("spiece.model cannot be read as a SentencePiece model"):
        tokenizer(str(tmp_path))
    assert capfd.readouterr().err == ""


def test_an_unknown_language():
    with refused("'qq'", "en, de, fr"):
        tokenizer("spacy:qq")


def test_a_folder_without_a_tokenizer(tmp_path):
    with refused(tmp_path, "tokenizer.json", "vocab.txt", "SentencePiece"):
        tokenizer(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "data"), [("tokenizer.json", b"{}"), ("tokenizer.json", b"\xff"), ("vocab.txt", b"a\xff\n")]
)
def test_a_file_that_is_no_tokenizer(name, data, tmp_path):
    (tmp_path / name).write_bytes(data)
    with refused(name):
        tokenizer(str(tmp_path))


def test_an_odd_configuration_is_an_error(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDPIECE))
    (tmp_path / "tokenizer_config.json").write_text("[")
    with refused("tokenizer_config.json"):
        tokenizer(str(tmp_path))


@pytest.mark.parametrize(
    ("module", "extra", "name"),
    [("spacy", "spacy", ""), ("tokenizers", "hf", "tokenizer.json"), ("sentencepiece", "hf", "spiece.model")],
)
def test_a_missing_extra_gives_the_line_that_installs_it(module, extra, name, tmp_path, monkeypatch):
    if name:
        (tmp_path / name).write_bytes(b"{}")

    def absent(name: str, package: str | None = None):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with refused(f"needs {module}: pip install 'embinit[{extra}]'", error=MissingExtra):
        tokenizer(str(tmp_path / name) if name else "spacy:en")


def test_an_extra_that_is_broken_inside_is_not_called_missing(monkeypatch):
    def broken(name: str, package: str | None = None):
        raise ModuleNotFoundError("No module named 'numpy.core'", name="numpy.core")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match=r"numpy\.core"):
        tokenizer("spacy:en")
