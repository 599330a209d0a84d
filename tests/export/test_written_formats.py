"""Whatever is written reads back: the same tokens, the same bits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embinit
from embinit.errors import EmbinitError
from embinit.export.formats import FORMATS, Written, format_of, write
from embinit.text.vocabulary import from_file, from_tokens
from embinit.types import Matrix, Vocabulary

TEXTUAL = ("glove", "word2vec", "word2vec-bin")
BESIDE = ("safetensors", "npy")
FOLDERS = ("model2vec", "sentence-transformers")
#: Numbers that a careless reader or writer would change.
HARD = (0.0, -0.0, 1e-45, -1.1754944e-38, 3.4028235e38, 1 / 3, 0.1, -123456.79, 1.0000001, 2**24 - 1)


def path_of(folder: Path, name: str) -> Path:
    return folder / f"vectors{FORMATS[name].ending}"


def some_rows(count: int, dim: int = 6, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).normal(0, 0.4, (count, dim)).astype(np.float32)


def back(written: Written) -> dict[str, bytes]:
    loaded = embinit.load(written.path)
    return {token: row.tobytes() for token, row in zip(loaded.tokens, loaded.vectors, strict=True)}


def sent(matrix: Matrix, vocabulary: Vocabulary, written: Written) -> dict[str, bytes]:
    rows = {token: row.tobytes() for token, row in zip(vocabulary.tokens, matrix, strict=True)}
    rows |= {token: bytes(4 * matrix.shape[1]) for token in written.added}
    return {token: row for token, row in rows.items() if token not in written.left_out}


def test_the_groups_above_name_every_format() -> None:
    assert sorted(TEXTUAL + BESIDE + FOLDERS) == sorted(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_rows_and_tokens_come_back(name: str, tmp_path: Path) -> None:
    vocabulary = from_tokens(["<unk>", "cat", "Über", "猫", "1", "3.14", "-", "e\u0301", "\u00a0x", "a" * 300, "😀"])
    matrix = some_rows(len(vocabulary))
    matrix[1:3].flat[: len(HARD)] = HARD
    written = write(matrix, vocabulary, path_of(tmp_path, name), format=name)
    assert written.format == name
    assert written.left_out == written.added == ()
    assert back(written) == sent(matrix, vocabulary, written)
    assert all(file.is_file() for file in written.files)


@pytest.mark.parametrize("name", FORMATS)
def test_order_is_kept(name: str, tmp_path: Path) -> None:
    vocabulary = from_tokens(["[UNK]", *(f"w{i * 7919 % 1000}" for i in range(1000))])
    written = write(some_rows(1001), vocabulary, path_of(tmp_path, name), format=name)
    assert list(embinit.load(written.path).tokens) == list(vocabulary.tokens)


@pytest.mark.parametrize("name", FORMATS)
def test_only_wanted_rows_come_back(name: str, tmp_path: Path) -> None:
    vocabulary = from_tokens(["<unk>", *(f"w{i}" for i in range(200))])
    matrix = some_rows(201)
    write(matrix, vocabulary, path_of(tmp_path, name), format=name)
    found = embinit.load(path_of(tmp_path, name), {"w150", "w3", "absent"})
    assert sorted(found.tokens) == ["w150", "w3"]
    assert found.vectors[found.index["w150"]].tobytes() == matrix[151].tobytes()


@pytest.mark.parametrize("name", FORMATS)
def test_tokens_that_a_format_cannot_hold_are_reported_and_the_others_written(name: str, tmp_path: Path) -> None:
    odd = ["New York", "", "a\nb", "tab\tbed", "nul\0", "\udcff\udc80", "half\ud800"]
    vocabulary = from_tokens(["<unk>", "first", *odd, "last"])
    matrix = some_rows(len(vocabulary))
    written = write(matrix, vocabulary, path_of(tmp_path, name), format=name)
    expected = {"textual": [*odd[:5], odd[6]], "folder": odd[5:], "beside": []}
    group = "textual" if name in TEXTUAL else "folder" if name in FOLDERS else "beside"
    assert list(written.left_out) == expected[group]
    assert back(written) == sent(matrix, vocabulary, written)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_word_list_without_an_unknown_token_gets_a_zero_row_for_it(name: str, tmp_path: Path) -> None:
    vocabulary = from_tokens(["cat", "dog"])
    matrix = some_rows(2)
    written = write(matrix, vocabulary, tmp_path / "out", format=name)
    assert written.added == ("[UNK]",)
    assert back(written) == sent(matrix, vocabulary, written)


@pytest.mark.parametrize("name", FOLDERS)
def test_specials_are_not_split_by_the_tokenizer(name: str, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    written = write(some_rows(3), from_tokens(["<unk>", "</s>", "cat"]), tmp_path / "out", format=name)
    (path,) = (file for file in written.files if file.name == "tokenizer.json")
    assert tokenizers.Tokenizer.from_file(str(path)).encode("cat, </s>").tokens == ["cat", "<unk>", "</s>"]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_vocabulary_from_a_tokenizer_keeps_that_tokenizer(name: str, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    pieces = {"[UNK]": 0, "cat": 1, "##s": 2, "[PAD]": 5}  # ids 3 and 4 have no token
    own = tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]"))
    own.save(str(tmp_path / "tokenizer.json"))
    vocabulary = from_file(tmp_path / "tokenizer.json")
    written = write(some_rows(6), vocabulary, tmp_path / "out", format=name)
    (copy,) = (file for file in written.files if file.name == "tokenizer.json")
    assert json.loads(copy.read_text())["model"]["type"] == "WordPiece"
    assert written.added == ()


@pytest.mark.parametrize("name", FOLDERS)
def test_the_name_of_many_text_files_is_no_tokenizer(name: str, tmp_path: Path) -> None:
    vocabulary = from_tokens(["<unk>", "cat"], origin=", ".join(f"part-{i}.txt" for i in range(1000)))
    assert write(some_rows(2), vocabulary, tmp_path / "out", format=name).added == ()


@pytest.mark.parametrize("name", FORMATS)
def test_files_can_be_read_by_others(name: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    written = write(some_rows(2), from_tokens(["<unk>", "cat"]), path_of(tmp_path, name), format=name)
    assert {file.stat().st_mode for file in written.files} == {plain.stat().st_mode}


@pytest.mark.parametrize("name", BESIDE)
def test_counts_and_specials_travel_with_the_tokens(name: str, tmp_path: Path) -> None:
    vocabulary = Vocabulary(("<pad>", "cat"), np.array([0, 7]), frozenset({"<pad>"}))
    written = write(some_rows(2), vocabulary, path_of(tmp_path, name))
    content = json.loads(written.files[1].read_text())
    assert content == {"tokens": ["<pad>", "cat"], "counts": [0, 7], "specials": ["<pad>"]}


@pytest.mark.parametrize("name", TEXTUAL)
def test_nothing_but_unwritable_tokens_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(EmbinitError, match="no token can be written as text"):
        write(some_rows(2), from_tokens(["a b", ""]), path_of(tmp_path, name), format=name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", FORMATS)
def test_double_precision_is_rounded_once(name: str, tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(50, 8))
    vocabulary = from_tokens(["<unk>", *map(str, range(49))])
    written = write(matrix, vocabulary, path_of(tmp_path, name), format=name)  # type: ignore[arg-type]
    assert embinit.load(written.path).vectors.tobytes() == matrix.astype(np.float32).tobytes()


tokens = st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=8, unique=True)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=30, deadline=None)
@given(words=tokens, seed=st.integers(0, 2**32), scale=st.sampled_from([1e-3, 1.0, 30.0]))
def test_any_tokens_and_numbers_come_back(
    name: str, words: list[str], seed: int, scale: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    vocabulary = from_tokens(["first", *(word for word in words if word != "first")])
    matrix = some_rows(len(vocabulary), 4, seed) * np.float32(scale)
    written = write(matrix, vocabulary, path_of(tmp_path_factory.mktemp("any"), name), format=name)
    assert back(written) == sent(matrix, vocabulary, written)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", FORMATS)
def test_numbers_that_are_not_finite_are_refused(name: str, bad: float, tmp_path: Path) -> None:
    matrix = some_rows(2)
    matrix[1, 3] = bad
    with pytest.raises(EmbinitError, match="NaN or infinite numbers; nothing was written"):
        write(matrix, from_tokens(["a", "b"]), path_of(tmp_path, name), format=name)
    assert not list(tmp_path.iterdir())


def test_rows_and_tokens_must_be_as_many(tmp_path: Path) -> None:
    with pytest.raises(EmbinitError, match="3 rows for 2 tokens"):
        write(some_rows(3), from_tokens(["a", "b"]), tmp_path / "x.npy")


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.ending])
def test_the_ending_says_the_format(name: str) -> None:
    assert format_of(Path(f"a.b{FORMATS[name].ending}")) is FORMATS[name]


def test_a_name_goes_before_the_ending() -> None:
    assert format_of(Path("x.npy"), "glove") is FORMATS["glove"]


def test_an_unknown_ending_names_those_that_are_known() -> None:
    with pytest.raises(EmbinitError, match="which format") as error:
        format_of(Path("out.pt"))
    assert all(form.ending in str(error.value) and form.name in str(error.value) for form in FORMATS.values())


def test_an_unknown_format_is_met_with_the_closest() -> None:
    with pytest.raises(EmbinitError, match="unknown format 'safetensor'; did you mean 'safetensors'"):
        format_of(Path("x"), "safetensor")


@pytest.mark.parametrize(
    ("name", "options"),
    [("glove", {"no_header": True}), ("word2vec", {}), ("word2vec-bin", {"binary": True})],
)
def test_gensim_reads_the_same_bits(name: str, options: dict[str, bool], tmp_path: Path) -> None:
    gensim = pytest.importorskip("gensim")
    vocabulary = from_tokens(["<unk>", "cat", "New York", "Über", "猫"])
    matrix = some_rows(5)
    matrix[1, :4] = HARD[2:6]
    path = path_of(tmp_path, name)
    write(matrix, vocabulary, path, format=name)
    theirs = gensim.models.KeyedVectors.load_word2vec_format(str(path), **options)
    assert theirs.index_to_key == ["<unk>", "cat", "Über", "猫"]
    assert theirs.vectors.tobytes() == matrix[[0, 1, 3, 4]].tobytes()
