"""JoeyNMT: its own loop over its own reader, on the same tokens written as text."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from joeynmt import training as joeynmt

from benchmarks import clock
from benchmarks.cases import BETAS, DROPOUT, FEEDFORWARD, LAYERS, RATE, UNKNOWN, Case, Timed, sentences

#: Its own specials have the ids of ours, in the same order.
SPECIALS = ("<unk>", "<pad>", "<s>", "</s>")


def written(case: Case, folder: Path) -> None:
    """Write `train.source`, `train.target`, the first sentences of it as `dev`, and a vocabulary a side."""
    for side, rows in zip(("source", "target"), case.vocabularies, strict=True):
        tokens = [*SPECIALS, *(f"t{i}" for i in range(len(SPECIALS), rows))]
        # It cannot read a sentence of no tokens.
        lines = [" ".join(tokens[i] for i in row or [UNKNOWN]) for row in sentences(case.prepared, side)]
        (folder / f"train.{side}").write_text("\n".join(lines) + "\n")
        (folder / f"dev.{side}").write_text("\n".join(lines[:10]) + "\n")
        (folder / f"{side}.txt").write_text("\n".join(tokens) + "\n")


def settings(case: Case, folder: Path, steps: int) -> dict[str, Any]:
    """Return its configuration: the same model, Adam at a constant rate, batches of sentences."""
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
            # It says that a rate may be constant, but takes no configuration without a schedule.
            "scheduling": "exponential", "decrease_factor": 1.0,
            "optimizer": "adam", "adam_betas": list(BETAS), "learning_rate": RATE, "learning_rate_min": 0.0,
            "batch_size": case.batch, "batch_type": "sentence", "normalization": "tokens", "updates": steps,
            "epochs": 1000, "logging_freq": 100, "validation_freq": 100 * steps, "overwrite": True,
        },
        "testing": {},
    }  # fmt: skip


def training(case: Case) -> Timed:
    """Return the time of a step of its loop, from the beginning of one to the beginning of the next."""
    clock.ready(case)
    stamps = clock.Stamps(case)
    parameters = 0

    class Stamped(joeynmt.TrainManager):
        def _train_step(self, batch: Any) -> Any:
            nonlocal parameters
            parameters = sum(p.numel() for p in self.model.parameters())
            stamps.stamp()
            return super()._train_step(batch)

    joeynmt.TrainManager = Stamped
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(case, folder)
        (folder / "model").mkdir()
        joeynmt.train(0, None, settings(case, folder, stamps.steps), skip_test=True)
    return Timed(stamps.seconds, stamps.memory, parameters)
