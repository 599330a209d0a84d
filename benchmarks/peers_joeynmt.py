"""JoeyNMT with its own training loop and data reader, on the same tokens written as text."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from joeynmt import training as joeynmt

from benchmarks import clock
from benchmarks.cases import BETAS, DROPOUT, FEEDFORWARD, LAYERS, RATE, UNKNOWN, Case, Timing, read_sentences

#: JoeyNMT's special tokens have the same ids as ours.
SPECIALS = ("<unk>", "<pad>", "<s>", "</s>")


def write_task(case: Case, folder: Path) -> None:
    """Write `train` and `dev` (its first sentences) for each side, and a vocabulary for each side."""
    for side, rows in zip(("source", "target"), case.vocabularies, strict=True):
        tokens = [*SPECIALS, *(f"t{i}" for i in range(len(SPECIALS), rows))]
        # JoeyNMT cannot read an empty sentence.
        lines = [" ".join(tokens[i] for i in row or [UNKNOWN]) for row in read_sentences(case.prepared, side)]
        (folder / f"train.{side}").write_text("\n".join(lines) + "\n")
        (folder / f"dev.{side}").write_text("\n".join(lines[:10]) + "\n")
        (folder / f"{side}.txt").write_text("\n".join(tokens) + "\n")


def settings(case: Case, folder: Path, steps: int) -> dict[str, Any]:
    """Return the configuration of JoeyNMT: the same model, Adam at a constant rate, batches of sentences."""
    side = {
        "num_layers": LAYERS, "num_heads": case.heads, "hidden_size": case.dim, "ff_size": FEEDFORWARD,
        "dropout": DROPOUT, "layer_norm": "post", "activation": "relu", "type": "transformer",
        "embeddings": {"embedding_dim": case.dim, "scale": True, "dropout": DROPOUT},
    }  # fmt: skip

    def data(name: str) -> dict[str, Any]:
        return {"lang": name, "level": "word", "voc_file": str(folder / f"{name}.txt"), "max_length": -1}

    return {
        "name": "bench", "model_dir": str(folder / "model"), "use_cuda": False, "random_seed": 0,
        "data": {
            "train": str(folder / "train"), "dev": str(folder / "dev"), "dataset_type": "plain",
            "src": data("source"), "trg": data("target"),
        },
        "model": {
            "initializer": "xavier_uniform", "bias_initializer": "zeros", "embed_initializer": "xavier_uniform",
            "tied_embeddings": False, "tied_softmax": False, "encoder": side, "decoder": side,
        },
        "training": {
            # The documentation allows a constant rate, but a configuration without a schedule is rejected.
            "scheduling": "exponential", "decrease_factor": 1.0,
            "optimizer": "adam", "adam_betas": list(BETAS), "learning_rate": RATE, "learning_rate_min": 0.0,
            "batch_size": case.batch, "batch_type": "sentence", "normalization": "tokens", "updates": steps,
            "epochs": 1000, "logging_freq": 100, "validation_freq": 100 * steps, "overwrite": True,
        },
        "testing": {},
    }  # fmt: skip


def training(case: Case) -> Timing:
    """Return the time between the starts of two steps of JoeyNMT's loop."""
    clock.prepare_device(case)
    timer = clock.StepTimer(case)
    parameters = 0

    class TimedManager(joeynmt.TrainManager):
        def _train_step(self, batch: Any) -> Any:
            nonlocal parameters
            parameters = sum(p.numel() for p in self.model.parameters())
            timer.stamp()
            return super()._train_step(batch)

    joeynmt.TrainManager = TimedManager
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_task(case, folder)
        (folder / "model").mkdir()
        joeynmt.train(0, None, settings(case, folder, timer.steps), skip_test=True)
    return Timing(timer.seconds, timer.memory, parameters)
