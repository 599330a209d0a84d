"""Prepared tasks: ids decode back to the tokens, folders are whole, and nothing is done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embinit.corpora.examples import Corpus, Reading, split_of
from embinit.corpora.tasks import read_corpus
from embinit.errors import EmbinitError
from embinit.prepared.folder import Prepared, open_prepared
from embinit.prepared.prepare import Settings, prepare
from embinit.text.tokenizers import tokenizer
from tests.corpora.layouts import LAYOUTS, multi30k_raw


def wordpiece(folder: Path) -> str:
    letters = [chr(i) for i in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", *letters, *(f"##{letter}" for letter in letters), ".", "man", "the", "##ing"]
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    return str(folder)


def settings_for(corpus: Corpus, spec: str, lower: bool = True, min_count: int = 1) -> Settings:
    specs = tuple(spec.format(language=language) for language in corpus.languages)
    return Settings(corpus.name, specs, lower, min_count, corpus.languages)


def expected_tokens(corpus: Corpus, split: str, side: str, chosen: Settings) -> list[list[str]]:
    texts = corpus.splits[split].texts
    place = {"source": 0, "target": 1, "text": 0}[side]
    tokenize = tokenizer(chosen.tokenizers[place])
    columns = texts if side == "text" else (texts[place],)
    parts = [list(tokenize(text.lower() if chosen.lower else text for text in column)) for column in columns]
    if len(parts) == 1:
        return parts[0]
    return [[*first, "<eos>", *second] for first, second in zip(*parts, strict=True)]


def assert_decodes(prepared: Prepared, corpus: Corpus, chosen: Settings) -> None:
    for split in corpus.splits:
        for side in prepared.sides:
            packed, vocabulary = prepared.packed(split, side), prepared.vocabularies[side]
            wanted = expected_tokens(corpus, split, side, chosen)
            assert len(packed) == len(wanted)
            for i, tokens in enumerate(wanted):
                found = [vocabulary.tokens[j] for j in packed[i]]
                assert found == [token if token in vocabulary.index else "<unk>" for token in tokens]


@pytest.mark.parametrize("spec", ["whitespace", "spacy:{language}", "wordpiece"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_ids_decode_back_to_the_tokens(layout: str, spec: str, tmp_path: Path) -> None:
    name, make, _ = LAYOUTS[layout]
    corpus = read_corpus(name, make(tmp_path / "data"))
    chosen = settings_for(corpus, wordpiece(tmp_path / "pieces") if spec == "wordpiece" else spec)
    prepared, new = prepare(corpus, chosen, tmp_path / "out")
    assert new
    assert_decodes(prepared, corpus, chosen)
    assert prepared.manifest["splits"]["train"]["rows"] == len(corpus.splits["train"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=1, max_size=12), st.integers(1, 3))
def test_any_text_decodes_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], least: int
) -> None:
    texts = [[row[0] for row in rows], [row[1] for row in rows]]
    corpus = Corpus("made", "translation", {"train": split_of(texts, None, Reading(["made"]))}, languages=("xx", "xx"))
    chosen = settings_for(corpus, "whitespace", lower=False, min_count=least)
    try:
        prepared, _ = prepare(corpus, chosen, tmp_path_factory.mktemp("out"))
    except EmbinitError as error:
        assert "no token of the" in str(error)
        return
    assert_decodes(prepared, corpus, chosen)


def test_vocabulary_comes_from_training_alone(tmp_path: Path) -> None:
    train = split_of([["a b b c", "b"], ["x", "x"]], None, Reading(["t"]))
    valid = split_of([["d b"], ["y"]], None, Reading(["v"]))
    corpus = Corpus("made", "translation", {"train": train, "valid": valid}, languages=("xx", "xx"))
    prepared, _ = prepare(corpus, settings_for(corpus, "whitespace", min_count=2), tmp_path)
    vocabulary = prepared.vocabularies["source"]
    assert vocabulary.tokens == ("<unk>", "<pad>", "<bos>", "<eos>", "b")
    assert vocabulary.counts is not None
    assert vocabulary.counts.tolist() == [0, 0, 0, 0, 3]
    assert prepared.packed("valid", "source")[0].tolist() == [0, 4]
    assert prepared.manifest["splits"]["valid"]["sides"]["source"] == {
        "tokens": 2,
        "unknown": 1,
        "longest": 2,
        "empty": 0,
        "cut": 0,
    }
    assert prepared.references("valid") == ["y"]
    assert prepared.reference_tokens("valid") == [["y"]]
    with pytest.raises(EmbinitError, match="no references for train"):
        prepared.references("train")


def numbered(rows: int) -> Corpus:
    """Return a classification of pairs whose words tell the row."""
    splits = {
        name: split_of(
            [[f"r{i} a b c" for i in range(n)], [f"s{i}" for i in range(n)]], [i % 2 for i in range(n)], Reading([name])
        )
        for name, n in (("train", rows), ("valid", 5))
    }
    return Corpus("numbered", "classification", splits, ("even", "odd"), ("xx",))


def kept_rows(rows: int | None, out: Path) -> tuple[list[str], list[int], Prepared]:
    prepared, _ = prepare(numbered(50), Settings("numbered", ("whitespace",), False, 1, ("xx",), rows), out)
    packed, tokens = prepared.packed("train", "text"), prepared.vocabularies["text"].tokens
    return [tokens[packed[i][0]] for i in range(len(packed))], prepared.labels("train").tolist(), prepared


def test_rows_are_drawn_once_and_the_fewer_are_among_the_more(tmp_path: Path) -> None:
    everything, _, whole = kept_rows(None, tmp_path)
    assert everything == [f"r{i}" for i in range(50)]
    assert whole.manifest["notes"] == []
    few, labels, prepared = kept_rows(8, tmp_path)
    assert len(few) == 8
    assert labels == [int(name[1:]) % 2 for name in few]
    assert few == sorted(few, key=lambda name: int(name[1:])) != everything[:8]
    assert set(few) < set(kept_rows(20, tmp_path)[0])
    assert prepared.manifest["splits"]["train"]["left out"] == 42
    assert prepared.manifest["notes"] == ["train: 8 rows were drawn, 42 left out"]
    assert len(prepared.packed("valid", "text")) == 5
    assert "r0" in prepared.vocabularies["text"].index or "r0" not in few
    assert kept_rows(99, tmp_path)[2].manifest["notes"] == ["train: 99 rows were asked for, there are 50"]


def test_sentences_are_cut_each_of_a_pair_and_counted(tmp_path: Path) -> None:
    chosen = Settings("numbered", ("whitespace",), False, 1, ("xx",), None, 2)
    prepared, _ = prepare(numbered(4), chosen, tmp_path)
    packed, tokens = prepared.packed("train", "text"), prepared.vocabularies["text"].tokens
    assert [tokens[i] for i in packed[3]] == ["r3", "a", "<eos>", "s3"]
    assert prepared.manifest["splits"]["train"]["sides"]["text"]["cut"] == 4
    assert "train, text: 4 sentences were cut after 2 tokens" in prepared.manifest["notes"]


def test_references_are_not_cut(tmp_path: Path) -> None:
    splits = {name: split_of([["a b c"], ["x y z"]], None, Reading([name])) for name in ("train", "test")}
    corpus = Corpus("made", "translation", splits, languages=("xx", "xx"))
    prepared, _ = prepare(corpus, Settings("made", ("whitespace",) * 2, False, 1, ("xx", "xx"), None, 2), tmp_path)
    assert len(prepared.packed("test", "target")[0]) == 2
    assert prepared.reference_tokens("test") == [["x", "y", "z"]]


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"longest": -1}])
def test_no_rows_and_no_tokens_are_errors(wrong: dict[str, int]) -> None:
    with pytest.raises(EmbinitError, match=f"{next(iter(wrong))} is"):
        Settings("made", ("whitespace",), False, 1, ("xx",), **wrong)


def test_two_sentences_are_joined_by_eos(tmp_path: Path) -> None:
    corpus = read_corpus("mnli", LAYOUTS["mnli, glue"][1](tmp_path / "data"))
    prepared, _ = prepare(corpus, settings_for(corpus, "whitespace"), tmp_path / "out")
    vocabulary = prepared.vocabularies["text"]
    assert [vocabulary.tokens[i] for i in prepared.packed("train", "text")[0]] == [
        "a",
        "man",
        "runs.",
        "<eos>",
        "a",
        "man",
        "moves.",
    ]
    assert prepared.labels("train").tolist() == [0, 2]


def test_the_same_is_not_done_twice_and_other_settings_are_elsewhere(tmp_path: Path) -> None:
    corpus = read_corpus("multi30k", multi30k_raw(tmp_path / "data"))
    first, new = prepare(corpus, settings_for(corpus, "whitespace"), tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in first.path.iterdir()}
    again, done = prepare(corpus, settings_for(corpus, "whitespace"), tmp_path / "out")
    assert (new, done) == (True, False)
    assert {path: path.stat().st_mtime_ns for path in again.path.iterdir()} == before
    others = [settings_for(corpus, "whitespace", lower=False), settings_for(corpus, "whitespace", min_count=2)]
    paths = {prepare(corpus, chosen, tmp_path / "out")[0].path for chosen in others}
    assert len(paths | {first.path}) == 3


def test_other_source_files_are_another_folder(tmp_path: Path) -> None:
    corpus = read_corpus("multi30k", multi30k_raw(tmp_path / "data", ""))
    first, _ = prepare(corpus, settings_for(corpus, "whitespace"), tmp_path / "out")
    with (tmp_path / "data" / "train.de").open("a") as de, (tmp_path / "data" / "train.en").open("a") as en:
        de.write("Neu.\n")
        en.write("New.\n")
    changed = read_corpus("multi30k", tmp_path / "data")
    second, new = prepare(changed, settings_for(changed, "whitespace"), tmp_path / "out")
    assert new
    assert second.path != first.path


def test_it_is_readable_with_numpy_alone(tmp_path: Path) -> None:
    corpus = read_corpus("multi30k", multi30k_raw(tmp_path / "data"))
    prepared, _ = prepare(corpus, settings_for(corpus, "whitespace"), tmp_path / "out")
    ids = np.load(prepared.path / "train.source.ids.npy", mmap_mode="r", allow_pickle=False)
    offsets = np.load(prepared.path / "train.source.offsets.npy", allow_pickle=False)
    assert ids.dtype == np.uint16
    assert offsets.tolist() == [0, 3, 8, 13]
    assert isinstance(prepared.packed("train", "source").ids, np.memmap)


def test_killed_in_the_middle_leaves_no_half_folder(tmp_path: Path) -> None:
    rows = "".join(f"das ist satz nummer {i} von vielen\tthis is sentence {i} of many\n" for i in range(60_000))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "data.tsv").write_text("source\ttarget\n" + rows)
    command = [sys.executable, "-m", "embinit", "prepare", "files", "--data", str(tmp_path / "data"), "-o"]
    command += [str(tmp_path / "out"), "--tokenizer", "whitespace"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ})
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("out/.*part")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not [path for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "prepared:" in done.stdout


def test_what_cannot_be_prepared_is_said(tmp_path: Path) -> None:
    only_valid = Corpus(
        "made", "translation", {"valid": split_of([["a"], ["b"]], None, Reading([]))}, languages=("x", "x")
    )
    with pytest.raises(EmbinitError, match="made has no training split here"):
        prepare(only_valid, settings_for(only_valid, "whitespace"), tmp_path)
    with pytest.raises(EmbinitError, match="is not a prepared task"):
        open_prepared(tmp_path)
    corpus = read_corpus("multi30k", multi30k_raw(tmp_path / "data"))
    prepared, _ = prepare(corpus, settings_for(corpus, "whitespace"), tmp_path / "out")
    with pytest.raises(EmbinitError, match="no split 'tset'; did you mean 'test'"):
        prepared.packed("tset", "source")
    manifest = json.loads((prepared.path / "manifest.json").read_text())
    (prepared.path / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
    with pytest.raises(EmbinitError, match="version 99"):
        open_prepared(prepared.path)


# ---------------------------------------------------------------- running text

LINES = ["= Title =", "", "The cat <unk> sat", "It slept", "", "", "The end"]


def text_corpus(task: str = "language_model") -> Corpus:
    splits = {name: split_of([LINES], None, Reading([name])) for name in ("train", "valid")}
    return Corpus("made", task, splits, languages=("en",))  # type: ignore[arg-type]


def text_settings(**changes: object) -> Settings:
    return Settings(**{"name": "made", "tokenizers": ("whitespace",), "lower": False, "min_count": 1,
                       "languages": ("en",), **changes})  # type: ignore[arg-type]  # fmt: skip


def texts_of(prepared: Prepared, split: str = "train") -> list[str]:
    tokens = prepared.vocabularies["text"].tokens
    packed = prepared.packed(split, "text")
    return [" ".join(tokens[i] for i in packed[row]) for row in range(len(packed))]


def test_every_line_of_a_text_is_kept(tmp_path: Path) -> None:
    prepared, _ = prepare(text_corpus(), text_settings(), tmp_path)
    assert prepared.task == "language_model"
    assert texts_of(prepared) == LINES
    # 11 words and the ends of 7 lines; the bytes of the file
    assert prepared.sizes("valid") == {"lines": 7, "words": 18, "bytes": len("\n".join(LINES)) + 1}
    vocabulary = prepared.vocabularies["text"]
    assert vocabulary.counts is not None
    assert vocabulary.counts[vocabulary.index["<eos>"]] == 7
    assert vocabulary.counts[vocabulary.index["<unk>"]] == 1
    assert "<mask>" not in vocabulary.index


def test_a_masked_model_reads_the_same_text_and_a_mask(tmp_path: Path) -> None:
    causal, _ = prepare(text_corpus(), text_settings(), tmp_path)
    masked, new = prepare(text_corpus("masked_language_model"), text_settings(), tmp_path)
    assert new
    assert texts_of(masked) == texts_of(causal)
    tokens = masked.vocabularies["text"].tokens
    assert tokens[4] == "<mask>"
    assert set(tokens) - set(causal.vocabularies["text"].tokens) == {"<mask>"}
    assert "<mask>" in masked.vocabularies["text"].specials


def test_blank_lines_may_end_documents(tmp_path: Path) -> None:
    prepared, _ = prepare(text_corpus(), text_settings(boundary="blank"), tmp_path)
    joined = ["= Title =", "The cat <unk> sat It slept", "The end"]
    assert texts_of(prepared) == joined
    assert prepared.sizes("train") == {"lines": 3, "words": 14, "bytes": len("\n".join(joined)) + 1}


def test_of_a_text_the_first_lines_are_kept(tmp_path: Path) -> None:
    prepared, _ = prepare(text_corpus(), text_settings(rows=3), tmp_path)
    assert texts_of(prepared) == LINES[:3]
    assert prepared.manifest["splits"]["train"]["left out"] == 4
    assert texts_of(prepared, "valid")[0] == "= Title ="


@pytest.mark.parametrize(("spec", "line", "tokens"), [
    ("characters", "aé b", ["a", "é", " ", "b"]), ("bytes", "aé b", ["a", "Ã", "©", "Ġ", "b"])
])  # fmt: skip
def test_a_text_may_be_split_into_characters_or_bytes(spec: str, line: str, tokens: list[str], tmp_path: Path) -> None:
    corpus = Corpus("made", "language_model", {"train": split_of([[line]], None, Reading(["made"]))}, languages=("xx",))
    prepared, _ = prepare(corpus, text_settings(tokenizers=(spec,)), tmp_path)
    vocabulary = prepared.vocabularies["text"].tokens
    assert [vocabulary[i] for i in prepared.packed("train", "text")[0]] == tokens
    assert prepared.sizes("train") == {"lines": 1, "words": 3, "bytes": 6}


def test_lines_of_a_text_are_never_cut(tmp_path: Path) -> None:
    with pytest.raises(EmbinitError, match="longest"):
        prepare(text_corpus(), text_settings(longest=3), tmp_path)
    translation = Corpus(
        "made", "translation", {"train": split_of([["a"], ["b"]], None, Reading([]))}, languages=("x", "x")
    )
    with pytest.raises(EmbinitError, match="boundary"):
        prepare(translation, text_settings(tokenizers=("whitespace",) * 2, boundary="line"), tmp_path)
