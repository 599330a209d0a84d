"""Small models and batches for tests."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from embinit.models.architecture import Architecture
from embinit.models.model import Member, Stack
from embinit.models.packing import Layout, layout

SOURCE, TARGET = 23, 19


def architecture(**changes: object) -> Architecture:
    values = {"dim": 16, "heads": 4, "layers": 2, "feedforward": 24, "dropout": 0.0, "length": 40, **changes}
    if values.get("task", "translation") == "translation":
        return Architecture(**{"task": "translation", "vocabularies": (SOURCE, TARGET), **values})  # type: ignore[arg-type]
    return Architecture(**{"vocabularies": (SOURCE,), "classes": 3, **values})  # type: ignore[arg-type]


def member(a: Architecture, seed: int, start: int = 0, std: float = 0.1) -> Member:
    rng = np.random.default_rng([seed, start])
    return Member(seed, tuple((std * rng.standard_normal((n, a.dim))).astype(np.float32) for n in a.vocabularies))


def stack(a: Architecture, *seeds: int) -> Stack:
    return Stack(a, [member(a, seed) for seed in seeds])


def batch(
    lengths: list[list[int]], rows: int, room: int = 64, longest: int = 14, seed: int = 0
) -> tuple[Tensor, Layout]:
    """Return packed ids (members, room) and their layout; a member's ids depend on its own lengths and place alone."""
    ids = torch.zeros(len(lengths), room, dtype=torch.int64)
    for i, own in enumerate(lengths):
        values = np.random.default_rng([seed, *own]).integers(4, rows, sum(own))
        ids[i, : sum(own)] = torch.from_numpy(values)
    return ids, layout(np.array(lengths), room, longest, "cpu")
