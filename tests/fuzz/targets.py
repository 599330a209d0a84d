"""Everything that reads a file, with sound files to begin from: the targets of the fuzzer."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from embinit.corpora.running_text import read_text
from embinit.corpora.user import read_files
from embinit.diagnosis.analogy import read_questions
from embinit.experiments.conversion import architecture_of, check_shapes
from embinit.experiments.definition.reader import read_draft
from embinit.experiments.inputs.row_files import is_intact
from embinit.experiments.jobs import read_jobs
from embinit.experiments.runs.collect import collect
from embinit.experiments.runs.result import read_result
from embinit.experiments.runs.weights import KeptWeights, WeightFacts, read_weights
from embinit.experiments.spec_reader import spec_of
from embinit.extending.words import read_words
from embinit.glove.checkpoint import Position
from embinit.glove.checkpoint import load as load_glove
from embinit.glove.checkpoint import save as save_glove
from embinit.glove.kernel import initial
from embinit.hosts import host
from embinit.models.architecture import Architecture
from embinit.models.parameters import parameters
from embinit.prepared.folder import open_prepared
from embinit.recipes.recipe import read_recipe
from embinit.reports.results_reader import read_compact
from embinit.reports.scores_file import read_scores
from embinit.sources.catalogue import Entry
from embinit.sources.fetch import fetch
from embinit.sources.load import load
from embinit.text.tokenizers import tokenizer
from embinit.text.vocabulary import from_file, read_lines
from tests.experiments.made import BLOCK, HEAD
from tests.sources.folders import TOKENS, float32, matrix, safetensors
from tests.sources.test_fuzz import TOKENIZER, WHOLE

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Target:
    """A reader, the name of its file, and sound contents of that file."""

    name: str
    file: str
    seeds: tuple[bytes, ...]
    read: Callable[[Path], Any]


def _vectors(path: Path) -> None:
    if path.suffix in (".npy", ".safetensors"):
        (path.parent / "m.tokens.json").write_bytes(_json(TOKENS))
    for wanted in (None, {"cat", "the"}):
        embeddings = load(path, wanted)
        assert np.isfinite(embeddings.vectors).all()
        assert len(set(embeddings.tokens)) == len(embeddings.tokens)


def _lines(path: Path) -> None:
    for _ in read_lines([path]):
        pass


def _prepared(path: Path) -> None:
    opened = open_prepared(path.parent)
    assert opened.splits


def _collected(path: Path) -> None:
    collect(path, path.parent / "runs")


def _compact(path: Path) -> None:
    read_compact(path).summary()


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _run_files() -> dict[str, bytes]:
    """Return the files of a finished run."""
    side = {"source": "", "recipe": "xavier", "fill": "target", "rows": ""}
    task = {"name": "made", "data": "0" * 64}
    spec = {"version": 1, "task": task, "sides": {"text": side}, "seed": 1, "model": {"dim": 16}, "training": {}}
    facts = {"mean": 0.0, "std": 0.1, "min": -1.0, "max": 1.0, "rows": 9, "dim": 16}
    return {
        "spec.json": _json(spec),
        "history.json": _json([{"train loss": 1.0, "valid loss": 2.0}]),
        "scores.json": _json({"best_epoch": 1, "diverged": False, "scores": {"test": {"bleu": 3.0}}, "signatures": {}}),
        "matrices.json": _json({"text": facts}),
        "run.json": _json({"device": "cpu", "versions": {}}),
    }


def _key() -> str:
    return spec_of(json.loads(_run_files()["spec.json"])).key


def _archive() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in _run_files().items():
            info = tarfile.TarInfo(f"runs/{_key()}/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def _run_file(name: str) -> Callable[[Path], None]:
    """Return a reader of a run's folder, whose other files are sound."""

    def read(path: Path) -> None:
        for other, content in _run_files().items():
            if other != name:
                (path.parent / other).write_bytes(content)
        read_result(path.parent)

    return read


MANIFEST: dict[str, Any] = {
    "version": 1, "name": "made", "task": "classification", "settings": {}, "labels": ["a"], "vocabularies": {"text": 5},
    "splits": {"train": {"rows": 1, "sides": {"text": {"tokens": 1, "longest": 1}}}}, "notes": [],
}  # fmt: skip
JOBS: dict[str, Any] = {
    "version": 1, "commit": "", "code": "", "tasks": {"t": "prepared/t"}, "sources": {}, "jobs": [
        {"key": _key(), "spec": json.loads(_run_files()["spec.json"]), "task": "t", "sides": {"text": {"rows": None}}}
    ],
}  # fmt: skip
TABLE = b"text\tlabel\n" + b"".join(b"sentence %d\t%s\n" % (i, b"ab"[i % 2 :][:1]) for i in range(12))


def _weights() -> tuple[bytes, bytes]:
    """Return kept weights, and the same as earlier versions wrote them, without a checksum."""
    architecture = Architecture("language_model", 4, (3,), heads=1, layers=1, feedforward=4, length=4)
    facts: WeightFacts = {
        "architecture": asdict(architecture), "vocabularies": {"text": ["a", "b", "c"]},
        "tokenizers": {"text": "whitespace"}, "lower": False, "key": "0" * 16,
    }  # fmt: skip
    shapes = {parameter.name: parameter.shape for parameter in parameters(architecture)}
    tensors = {name: np.zeros(shape, np.float32) for name, shape in {**shapes, "text.embedding": (3, 4)}.items()}
    older = save(tensors, metadata={"version": "1", "facts": json.dumps(facts)})
    return KeptWeights(tensors, facts).as_bytes(), older


def _read_weights(path: Path) -> None:
    weights = read_weights(path.parent)
    check_shapes(weights, architecture_of(weights, path), path)


DOWNLOAD = {"url": "http://x/v.txt", "sha256": "0" * 64, "checked": "recorded", "size": 3}


def _downloaded(path: Path) -> None:
    (path.parent / "v.txt").write_bytes(b"abc")
    fetch(Entry("glove:test", "http://127.0.0.1:9/v.txt"), path.parent, pause=0)


RESULTS = next(iter(sorted((ROOT / "results").glob("*.results.json"), key=lambda path: path.stat().st_size)))
CONFIG = {"model_type": "bert", "vocab_size": 8, "hidden_size": 4, "text_config": {"vocab_size": 3}}

OWN_FORMAT = _json({"tokens": TOKENS, "specials": ["[PAD]"]})
RECIPE = b'[mine]\nsteps = ["pretrained", {scale = {ratio = 0.4}}]\n'
LINES = b'{"text": "a b", "label": "x"}\n' * 9


def _own_data(path: Path) -> None:
    read_files(path.parent)


ADDED = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
SPLITTER = {
    **TOKENIZER,
    "model": {**TOKENIZER["model"], "continuing_subword_prefix": "##", "max_input_chars_per_word": 9},
    "added_tokens": [{**TOKENIZER["added_tokens"][0], **ADDED}],
    "pre_tokenizer": {"type": "Whitespace"},
}
ROWS = {
    **float32(rows=matrix(3)),
    "found": ("U8", (4,), bytes([1, 1, 0, 1])),
    "kinds": ("U8", (4,), bytes([0, 0, 5, 0])),
}


def _glove_checkpoint() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "v")
        save_glove(path, {}, initial(3, 2, 0), Position())
        return path.read_bytes()


TARGETS = [
    *(Target(f"vectors {name}", name, (content,), _vectors) for name, content in WHOLE.items()),
    Target("token list", "vocab.txt", ("\n".join(TOKENS).encode(), _json(TOKENS)), from_file),
    Target("tokenizer.json", "tokenizer.json", (_json(TOKENIZER), OWN_FORMAT), from_file),
    Target("tokenizer", "tokenizer.json", (_json(SPLITTER),), lambda path: tokenizer(str(path), ())),
    Target("config.json", "config.json", (_json(CONFIG),), lambda path: host(str(path.parent))),
    Target("text", "text.txt", (b"a sentence\nanother\n", gzip.compress(b"a sentence\n" * 9)), _lines),
    Target("running text", "text.txt", (b"a sentence of words\n" * 30,), read_text),
    Target("table of sentences", "train.tsv", (TABLE,), _own_data),
    Target("sentences in JSON", "train.jsonl", (LINES,), _own_data),
    Target("sentences in CSV", "train.csv", (TABLE.replace(b"\t", b","),), _own_data),
    Target("analogy questions", "questions.txt", (b": capitals\nathens greece oslo norway\n",), read_questions),
    Target("experiment", "made.toml", ((HEAD + BLOCK).encode(),), read_draft),
    Target("recipe", "r.toml", (RECIPE,), lambda path: read_recipe(str(path))),
    Target("jobs", "jobs.json", (_json(JOBS),), read_jobs),
    *(Target(name, name, (content,), _run_file(name)) for name, content in _run_files().items()),
    Target("archive of runs", "runs.tar.gz", (_archive(),), _collected),
    Target("results", "r.results.json", (RESULTS.read_bytes(),), _compact),
    Target("scores", "s.csv", (b"start,seed,bleu\na,1,2.0\na,2,3\nb,1,4\nb,2,5\n",), read_scores),
    Target("manifest", "manifest.json", (_json(MANIFEST),), _prepared),
    Target("aligned rows", "rows.safetensors", (safetensors(ROWS),), lambda path: is_intact(path, "0" * 64)),
    Target("kept weights", "weights.safetensors", _weights(), _read_weights),
    Target("new tokens", "words.txt", (b"zorbling\nquuxish\tthe cat\n",), read_words),
    Target("record of a download", "v.txt.json", (_json(DOWNLOAD),), _downloaded),
    Target("glove checkpoint", "v.txt.checkpoint", (_glove_checkpoint(),), lambda path: load_glove(path, {})),
]  # fmt: skip
