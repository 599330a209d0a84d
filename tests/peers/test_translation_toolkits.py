"""JoeyNMT, OpenNMT-py and fairseq read our word2vec text with their own readers, to the bit."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from own_environment import answer, environment, sources

from benchmarks import environments
from embinit.export.formats import write
from embinit.text.vocabulary import from_tokens
from embinit.types import Matrix

pytestmark = pytest.mark.long

SPECIALS = ["<unk>", "<pad>", "<s>", "</s>"]  # as JoeyNMT orders them
WORDS = ["the", "Über", "猫", "▁sub", "wal@@", "new york", "3.14", "."]
WRITTEN = [word for word in WORDS if " " not in word]


@pytest.fixture
def matrix() -> Matrix:
    rows = np.random.default_rng(0).normal(0, 0.4, (len(SPECIALS + WORDS), 6)).astype(np.float32)
    rows[4, :4] = (1e-45, 3.4028235e38, 1 / 3, -0.0)
    return rows


@pytest.fixture
def vectors(matrix: Matrix, tmp_path: Path) -> Path:
    path = tmp_path / "embedding.vec"
    assert write(matrix, from_tokens([*SPECIALS, *WORDS]), path).left_out == ("new york",)
    return path


def bits(rows: object) -> bytes:
    return np.array(rows, dtype=np.float32).tobytes()


JOEYNMT = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from joeynmt.embeddings import Embeddings
from joeynmt.vocabulary import Vocabulary
cfg = SimpleNamespace(unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None,
                      unk_id=0, pad_id=1, bos_id=2, eos_id=3, sep_id=None, lang_tags=[])
vocabulary = Vocabulary(json.loads(sys.argv[2]), cfg)
layer = Embeddings(embedding_dim=6, vocab_size=len(vocabulary), padding_idx=1)
before = layer.lut.weight.detach().clone()
layer.load_from_file(Path(sys.argv[1]), vocabulary)
same = (before == layer.lut.weight).all(dim=1).tolist()
print(json.dumps({"weight": layer.lut.weight.tolist(), "untouched": same}))
"""


def test_joeynmt_loads_the_rows(vectors: Path, matrix: Matrix) -> None:
    python = environment("joeynmt", *environments.JOEYNMT)
    found = answer(python, JOEYNMT, vectors, json.dumps([*WORDS, "unseen"]))
    weight, untouched = found["weight"], found["untouched"]
    there = [i for i, token in enumerate([*SPECIALS, *WORDS]) if " " not in token]
    assert bits([weight[i] for i in there]) == matrix[there].tobytes()
    assert [i for i, same in enumerate(untouched) if same] == [len(SPECIALS) + WORDS.index("new york"), len(weight) - 1]


OPENNMT = """
import json, sys
from onmt.modules.embeddings import read_embeddings
rows, count = read_embeddings(sys.argv[1], skip_lines=1)
print(json.dumps({"rows": rows, "count": count}))
"""


def test_opennmt_reads_the_rows(vectors: Path, matrix: Matrix) -> None:
    # Its own pin is torch<2.3; the reader needs no more than what is imported beside it.
    beside = ["numpy", "six", "pyyaml", "tensorboard", "sacrebleu", "configargparse", "pyonmttok", "pyahocorasick"]
    python = environment(
        "opennmt", environments.TORCH, [*beside, "rapidfuzz", "fasttext", "spacy"], ["--no-deps", "OpenNMT-py==3.5.1"]
    )
    found = answer(python, OPENNMT, vectors)
    assert list(found["rows"]) == [*SPECIALS, *WRITTEN]
    assert found["count"] == len(SPECIALS + WRITTEN)
    kept = [i for i, token in enumerate([*SPECIALS, *WORDS]) if " " not in token]
    assert bits(list(found["rows"].values())) == matrix[kept].tobytes()


FAIRSEQ = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("fairseq_utils", sys.argv[2])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps({token: row.tolist() for token, row in module.parse_embedding(sys.argv[1]).items()}))
"""


def test_fairseq_parses_the_rows(vectors: Path, matrix: Matrix, tmp_path: Path) -> None:
    """0.12.2 does not install beside a current torch, but `fairseq/utils.py` imports nothing else: it is run alone."""
    with tarfile.open(sources("fairseq==0.12.2", tmp_path)) as archive:
        archive.extract("fairseq-0.12.2/fairseq/utils.py", tmp_path, filter="data")
    found = answer(Path(sys.executable), FAIRSEQ, vectors, tmp_path / "fairseq-0.12.2/fairseq/utils.py")
    assert list(found) == [*SPECIALS, *WRITTEN]
    kept = [i for i, token in enumerate([*SPECIALS, *WORDS]) if " " not in token]
    assert bits(list(found.values())) == matrix[kept].tobytes()
