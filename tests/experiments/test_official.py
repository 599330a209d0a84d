"""The paper's blocks wait for official files: with files of these names and layouts in place, each of them can be run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from embinit.experiments.inputs.locations import Places
from tests.corpora.layouts import ENGLISH, GERMAN, iwslt_official, lines, mnli_glue, multi30k_raw, sst2_tsv, write
from tests.experiments.made import resolved

PAPER = Path(__file__).parents[2] / "experiments" / "paper"
WORDS = sorted({word.strip(".").lower() for text in (*GERMAN, *ENGLISH) for word in text.split()})
RNG = np.random.default_rng(0)


def wordpiece(folder: Path) -> int:
    pieces = ["[PAD]", "[UNK]", *WORDS, ".", "##s"]
    write(folder / "vocab.txt", lines(pieces))
    return len(pieces)


def tokenizer_json(folder: Path) -> int:
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(["<unk>", *WORDS])}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(folder / "tokenizer.json"))
    return len(WORDS) + 1


def pieces(folder: Path) -> int:
    """Write what mT5 comes with: a SentencePiece model and no tokenizer.json."""
    text = write(folder.with_name("text"), lines([*GERMAN, *ENGLISH] * 20))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / "spiece"), vocab_size=99, hard_vocab_limit=False, minloglevel=2
    )
    (folder / "spiece.vocab").unlink()
    return int(sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model")).get_piece_size())


CHECKPOINTS = {
    "bert-base-uncased": ("bert", wordpiece, "bert.embeddings.word_embeddings.weight", 768),
    "bert-base-multilingual-cased": ("bert", wordpiece, "bert.embeddings.word_embeddings.weight", 768),
    "t5-small": ("t5", tokenizer_json, "shared.weight", 512),
    "mt5-base": ("mt5", pieces, "shared.weight", 768),
}


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """Small files with the names and in the layouts of the official ones, IWSLT2017's test sets as one finds them beside."""
    root = tmp_path_factory.mktemp("official")
    data, vectors = root / "data", root / "vectors"
    multi30k_raw(data / "multi30k")
    sst2_tsv(data / "sst2")
    mnli_glue(data / "mnli")
    iwslt_official(data / "iwslt2017")
    for path in data.rglob("*.xml"):
        path.unlink()
    rows = lines(["de\ten", *(f"{de}\t{en}" for de, en in zip(GERMAN, ENGLISH, strict=True))])
    for split in ("valid", "test"):
        write(data / "iwslt2017" / f"{split}.de-en.tsv.gz", rows)
    for language, texts in (("de", GERMAN), ("en", ENGLISH)):
        write(data / "iwslt2017" / f"train.tags.de-en.{language}", lines(["<url>x</url>", *texts * 5]))
        write(data / "multi30k" / f"train.{language}.gz", lines(texts * 2))
    for task in ("sst2", "mnli"):
        head, *body = (data / task / "train.tsv").read_text().splitlines()
        write(data / task / "train.tsv", lines([head, *body * 2]))
    for name in ("glove.840B.300d.txt", "deepset-german-glove.txt"):
        listed = [*WORDS, ".", ". . .", "at name@domain.com"]
        write(vectors / name, lines([f"{w} {' '.join(f'{x:.3f}' for x in RNG.normal(size=300))}" for w in listed]))
    for name, (kind, tokens, tensor, dim) in CHECKPOINTS.items():
        folder = vectors / name
        folder.mkdir()
        rows_of = RNG.normal(size=(tokens(folder) + 100, dim)).astype(np.float32)
        write(folder / "config.json", json.dumps({"model_type": kind, "vocab_size": len(rows_of)}))
        if kind == "bert":
            save_file({tensor: rows_of}, folder / "model.safetensors")
        else:
            torch.save({tensor: torch.from_numpy(rows_of)}, folder / "pytorch_model.bin")
    return Places(data, vectors, root / "work")


OFFICIAL = {
    f"{task}, {source}"
    for task in ("Multi30k", "MNLI", "SST-2", "IWSLT2017")
    for source in ("GloVe", "BERT", "mBERT", "T5", "mT5")
}


@pytest.mark.parametrize(("table", "count"), [("table1", 12), ("table7", 8), ("figure1", 3), ("table3", 1)])
def test_every_block_of_official_files_can_be_run_with_these_in_place(table: str, count: int, official: Places) -> None:
    blocks = resolved(PAPER / f"{table}.toml", official).experiments[0].blocks
    named = [block for block in blocks if block.name in OFFICIAL]
    assert len(named) == count
    assert {block.name: block.missing for block in named if block.missing} == {}
    assert all(run.spec.resolved for block in named for run in block.runs)
    others = [block.missing for block in blocks if block.name not in OFFICIAL]
    assert others
    assert all(missing.startswith("needs ") for missing in others)
