"""Kept weights: in no key, in no other file, and as a folder of transformers with the logits and tokens of the run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from embinit.errors import EmbinitError
from embinit.experiments.conversion import convert
from embinit.experiments.execution.engine import execute
from embinit.experiments.inputs.locations import Places
from embinit.experiments.inputs.resolve import resolve
from embinit.experiments.jobs import read_jobs
from embinit.experiments.plan import specs_of, write_plan
from embinit.experiments.runs.collect import collect
from embinit.experiments.runs.weights import NAME, read_weights
from embinit.records import Damaged
from tests.experiments.made import command
from tests.experiments.test_language_models import BLOCK, HEAD, draft

_TASKS = """
[tasks.characters]
name = "captions-text"
size = 100
tokenizer = "characters"
lower = true
[tasks.bytes]
name = "captions-text"
size = 100
tokenizer = "bytes"
"""
_BLOCKS = """
[[block]]
name = "gpt2"
grid.task = ["text", "characters", "bytes"]
model.preset = "gpt2"
training.epochs = 1
[[block]]
name = "bert"
task = "masked"
model.preset = "bert"
training.epochs = 1
[[block]]
name = "sinusoidal"
model.preset = "sinusoidal"
training.epochs = 1
"""


def jobs_in(folder: Path) -> Path:
    where = Places(None, None, folder / "work")
    made = resolve([draft(folder, _BLOCKS, _TASKS + HEAD)], where)
    return write_plan(made, specs_of(made), where.work, where.work)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the run folder of each task; that of the model without a class is `sinusoidal`."""
    folder = tmp_path_factory.mktemp("kept")
    jobs = jobs_in(folder)
    execute(jobs, folder / "runs", device="cpu", workers=1, keep_weights=True)
    found = {}
    for job in read_jobs(jobs).jobs:
        name = f"{job.spec.task.tokenizer} {job.spec.task.kind}"
        found["sinusoidal" if dict(job.spec.model)["positions"] == "sinusoidal" else name] = folder / "runs" / job.key
    assert len(found) == 5
    return found


def test_weights_change_no_other_file(kept: dict[str, Path], tmp_path: Path) -> None:
    summary = execute(jobs_in(tmp_path), tmp_path / "runs", device="cpu", workers=1)
    assert {path.name for path in summary.written} == {path.name for path in kept.values()}
    for run in kept.values():
        plain = {file.name for file in (tmp_path / "runs" / run.name).iterdir()}
        assert {file.name for file in run.iterdir()} == plain | {NAME}
        for name in plain - {"run.json"}:
            assert (run / name).read_bytes() == (tmp_path / "runs" / run.name / name).read_bytes()


@pytest.mark.parametrize("task", ["whitespace language_model", "characters language_model", "bytes language_model"])
def test_a_causal_model_loads_with_its_tokenizer(task: str, kept: dict[str, Path], tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    made = convert(kept[task], tmp_path / "out")
    assert made.model == "GPT2LMHeadModel"
    assert made.tokenizer
    assert made.difference < 1e-4
    model, tokenizer = (kind.from_pretrained(made.path) for kind in (AutoModelForCausalLM, AutoTokenizer))
    facts = read_weights(kept[task]).facts
    text = "A dog runs ."
    ids = tokenizer(text)["input_ids"]
    split = text.lower() if facts["lower"] else text
    pieces = split.split() if task.startswith("white") else list(split.replace(" ", "Ġ") if task[0] == "b" else split)
    vocabulary = facts["vocabularies"]["text"]
    assert ids == [vocabulary.index(piece) if piece in vocabulary else 0 for piece in pieces]
    assert model.config.vocab_size == len(vocabulary) == len(tokenizer)
    weights = read_weights(kept[task]).tensors
    assert np.array_equal(model.get_input_embeddings().weight.detach().numpy(), weights["text.embedding"])


def test_a_masked_model_loads_with_its_mask(kept: dict[str, Path], tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    made = convert(kept["whitespace masked_language_model"], tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(made.path)
    assert AutoModelForMaskedLM.from_pretrained(made.path).config.model_type == "bert"
    assert tokenizer.mask_token_id == 4
    assert tokenizer("A <mask>")["input_ids"][-1] == 4


def test_the_weights_of_the_best_epoch_are_kept(kept: dict[str, Path]) -> None:
    weights = read_weights(kept["whitespace language_model"])
    facts = json.loads((kept["whitespace language_model"] / "matrices.json").read_text())["text"]
    assert weights.tensors["text.embedding"].shape == (facts["rows"], facts["dim"])
    assert weights.tensors["text.embedding"].std() != pytest.approx(facts["std"], rel=1e-4), "they were trained"
    assert weights.facts["key"] == kept["whitespace language_model"].name


def test_a_model_without_a_class_is_refused_and_leaves_nothing(kept: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(EmbinitError, match=r"no class for this model; the closest is \w+, which needs"):
        convert(kept["sinusoidal"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_changed_weights_are_seen(kept: dict[str, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    path = kept["whitespace language_model"] / NAME
    content = path.read_bytes()
    flipped = [bytearray(content) for _ in range(2)]
    flipped[0][-3] ^= 1  # in a tensor
    flipped[1][content.index(b"dropout") + 15] ^= 1  # in a fact: 0.1 becomes another number
    for damaged in (content[:100], content[: len(content) // 2], b"", content[:8] + b"x" + content[9:], *flipped):
        (run / NAME).write_bytes(damaged)
        with pytest.raises(Damaged, match=r"weights\.safetensors is damaged"):
            convert(run, tmp_path / "out")
    tensors, older = load_file(path), {**read_metadata(path)}
    del older["checksum"]  # weights of earlier versions have none
    facts = json.loads(older["facts"])
    for name, value in (("layers", 10**6), ("dim", 2**40), ("vocabularies", [5]), ("feedforward", 10**9)):
        changed = {**facts, "architecture": {**facts["architecture"], name: value}}
        save_file(tensors, run / NAME, {**older, "facts": json.dumps(changed)})
        with pytest.raises(Damaged, match="do not fit its model"):
            convert(run, tmp_path / "out")
    save_file({**tensors, "decoder.norm.weight": np.ones(3, np.float32)}, run / NAME, older)
    with pytest.raises(Damaged, match="do not fit its model"):
        convert(run, tmp_path / "out")
    save_file(tensors, run / NAME, {**read_metadata(path), "version": "2"})
    with pytest.raises(Damaged, match="has version '2'"):
        convert(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def read_metadata(path: Path) -> dict[str, str]:
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    found: dict[str, str] = header["__metadata__"]
    return found


def test_weights_are_collected_with_their_run(kept: dict[str, Path], tmp_path: Path) -> None:
    run = kept["whitespace language_model"]
    collect(run.parent, tmp_path / "runs")
    assert (tmp_path / "runs" / run.name / NAME).read_bytes() == (run / NAME).read_bytes()


def test_the_command_writes_a_folder_and_says_what_is_missing(kept: dict[str, Path], tmp_path: Path) -> None:
    run, out = kept["whitespace language_model"], tmp_path / "out"
    written = command("convert", run, "-o", out, "--json")
    assert written.returncode == 0, written.stderr
    assert json.loads(written.stdout)["model"] == "GPT2LMHeadModel"
    again = command("convert", run, "-o", out)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    nothing = command("convert", tmp_path, "-o", tmp_path / "other")
    assert nothing.returncode == 2
    assert "no folder of a finished run" in nothing.stderr


def test_run_names_the_folder_of_the_best_weights(tmp_path: Path) -> None:
    draft(tmp_path, f'{BLOCK}model.preset = "gpt2"\ngrid.seed = [1, 2]\n')
    done = command("run", tmp_path / "text.toml", "--runs", tmp_path / "runs", "--device", "cpu", "--keep-weights")
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if "embinit convert" in line)
    folders = [path.parent for path in (tmp_path / "runs").glob("*/weights.safetensors")]
    scores = {path: json.loads((path / "scores.json").read_text())["scores"]["test"]["perplexity"] for path in folders}
    assert len(set(scores.values())) == 2
    assert str(min(folders, key=lambda path: scores[path])) in line
