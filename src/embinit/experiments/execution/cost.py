"""Estimates of the seconds and bytes of runs: a simple model of tokens and parameters (cost.toml)."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

from embinit.experiments.execution.members import architecture_of, training_of
from embinit.experiments.execution.scoring import scored_splits
from embinit.experiments.jobs import Group, Job
from embinit.experiments.spec import Spec
from embinit.models.architecture import Architecture
from embinit.models.parameters import count
from embinit.prepared.folder import Prepared, open_prepared
from embinit.training.options import Training

#: Numbers kept for a weight: its value, its gradient, Adam's two averages and its best value so far.
_COPIES = 5
#: Numbers that a layer keeps for the backward pass, per token and dimension, without those of the feed-forward layer.
_KEPT = 24
#: Numbers kept for a logit: its value, its logarithm and its gradient.
_LOGITS = 3
#: Returns the prepared task of a folder. A task that is not prepared yet is estimated (inputs/estimates.py).
Opening = Callable[[Path], Prepared]


@dataclass(frozen=True)
class RunCost:
    """One member's share: seconds that grow with members, seconds that do not, and bytes."""

    each: float
    shared: float
    memory: float

    def seconds(self, members: int) -> float:
        """Return the seconds that this number of members takes side by side."""
        return self.shared + members * self.each


def cost(spec: Spec, prepared: Prepared, kind: str) -> RunCost:
    """Return the estimated cost of a run on a `cpu` or on `cuda`."""
    constants, model, training = _constants()[kind], architecture_of(spec, prepared), training_of(spec)
    splits = prepared.manifest["splits"]
    rows, tokens = int(splits["train"]["rows"]), _tokens(splits["train"], model)
    read = dict(tokens)
    if model.is_language_model:
        rows = max(1, int(tokens["text"]) // model.length)  # blocks
        if "valid" in splits:  # often as long as the training text; the way forward is a third of a step
            overlap = model.length / (training.stride or model.length)
            read["text"] += _tokens(splits["valid"], model)["text"] * max(1.0, overlap) / 3
    steps, weights = training.epochs * -(-rows // training.batch), count(model)
    calculated = training.epochs * 6.0 * sum(read[side] * _weights(model, side) for side in read)
    calculated += (
        training.epochs * 6.0 * read.get("text", 0.0) * _predicted(model, training) * model.dim * model.outputs
    )
    # Matrix products of wide models are larger and therefore faster per operation.
    rate = constants["rate"] * (model.dim / 300) ** constants["width"] / constants["slower"][training.precision]
    moved = steps * 28.0 * weights
    each = calculated / rate + moved / constants["bandwidth"] + _decoded(spec, prepared) * constants["sentence"]
    shared = steps * constants["step"]
    batch = {side: training.batch * values / max(1, rows) for side, values in tokens.items()}
    kept = sum(batch[side] * model.layers * (_KEPT * model.dim + 2 * model.feedforward) for side in batch)
    logits = _LOGITS * batch.get("target", _predicted(model, training) * batch.get("text", 0.0)) * model.outputs
    memory = 4.0 * (weights * _COPIES + kept + logits)
    return RunCost(each + shared, 0.0, memory) if constants["turns"] else RunCost(each, shared, memory)


def _tokens(split: Mapping[str, Any], model: Architecture) -> dict[str, float]:
    """Return the tokens of each side of a split, with the tokens that mark the ends of its lines."""
    around = (1 if model.is_language_model else 2) * int(split["rows"])
    return {side: float(values["tokens"] + around) for side, values in split["sides"].items()}


def _predicted(model: Architecture, training: Training) -> float:
    """Return the share of a text's tokens that the output layer reads."""
    if model.task == "language_model":
        return 1.0
    return training.mask_rate if model.task == "masked_language_model" else 0.0


def _decoded(spec: Spec, prepared: Prepared) -> float:
    """Return the number of sentences that one member decodes: validation after epochs, the scored splits at the end."""
    if prepared.task != "translation":
        return 0.0
    training, splits = training_of(spec), prepared.manifest["splits"]
    along = training.epochs // training.bleu_every if training.bleu_every else 0
    ends = sum(int(splits[split]["rows"]) for split in scored_splits(prepared))
    return float(along * int(splits["valid"]["rows"]) + ends) if "valid" in splits else float(ends)


def _weights(model: Architecture, side: str) -> float:
    """Return the number of weights that multiply each token of a side."""
    attention = 4 * model.dim**2
    layer = attention + (3 if model.activation == "swiglu" else 2) * model.dim * model.feedforward
    if side == "target":
        return model.layers * (layer + attention / 2) + model.dim * model.outputs
    crossed = attention / 2 if model.task == "translation" else 0.0
    return model.layers * (layer + crossed)


def group_cost(group: Group, device: str, opened: Opening = open_prepared) -> tuple[float, float]:
    """Return the seconds and bytes that a group is estimated to take on a device."""
    kind = "cuda" if device.startswith("cuda") else "cpu"
    member = cost(group.jobs[0].spec, opened(group.jobs[0].task), kind)
    return member.seconds(len(group.jobs)), member.memory * len(group.jobs)


def members_that_fit(job: Job, device: str, opened: Opening = open_prepared) -> int:
    """Return the number of members like this one that fit the device's memory side by side."""
    kind = "cuda" if device.startswith("cuda") else "cpu"
    room = _constants()[kind]["share"] * _memory(device)
    each = cost(job.spec, opened(job.task), kind).memory
    return max(1, min(int(room / each), int(_constants()[kind]["most"])))


def groups_at_once(groups: Sequence[Group], device: str, opened: Opening = open_prepared) -> int:
    """Return the number of groups that a device trains at once: on a card, the number that fits its memory.

    The largest groups count, because any two groups may train at the same time.
    """
    if not device.startswith("cuda"):
        return 1
    constants = _constants()["cuda"]
    sizes = sorted((group_cost(group, device, opened)[1] for group in groups), reverse=True)
    needed = accumulate(size + constants["process"] for size in sizes[: int(constants["at_once"])])
    room = float(constants["share"]) * _memory(device)
    return max(1, len([size for size in needed if size <= room]))


def likely_device(name: str) -> str:
    """Return the kind of device of a name, without importing torch."""
    return ("cuda" if Path("/proc/driver/nvidia/version").exists() else "cpu") if name == "auto" else name


def _memory(device: str) -> float:
    if device.startswith("cuda"):
        if find_spec("torch") is not None:
            import torch

            if torch.cuda.is_available():
                return float(torch.cuda.get_device_properties(device).total_memory)
        return float(_constants()["cuda"]["memory"])  # the plan is for another machine
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@cache
def _constants() -> dict[str, dict[str, Any]]:
    return tomllib.loads(resources.files("embinit.experiments.execution").joinpath("cost.toml").read_text("utf-8"))
