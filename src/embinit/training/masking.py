"""Choose the tokens that a masked language model predicts, and the tokens that it reads in their places.

In training, only the member's seed and the step decide the places, so members of one seed predict the same tokens. For
scoring, the places are drawn once for each split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embinit.models.dropout import hashed, keys
from embinit.seeds import stream
from embinit.text.vocabulary import SPECIALS

#: The id of `<mask>`; the ids from the next one on are tokens of the text, and only these are masked.
MASK = len(SPECIALS)
FIRST_TOKEN = MASK + 1
#: Of the chosen tokens, this share is read as `<mask>`, and up to the second share another token (BERT); the others stay.
_AS_MASK, _AS_OTHER = 0.8, 0.9
_LARGEST = 1 << 32


@dataclass(frozen=True)
class Masked:
    """The tokens that a masked model reads, (members, room), and the places that it predicts, (members, places)."""

    ids: Tensor
    chosen: Tensor
    #: the tokens at the chosen places, and whether they are there: fewer tokens than places may be maskable
    asked: Tensor
    there: Tensor


def masked(ids: Tensor, real: Tensor, seeds: Tensor, step: Tensor | int, count: int, vocabulary: int) -> Masked:
    """Return a batch with `count` places of each member chosen, as its seed and the step decide.

    Parameters
    ----------
    ids
        Packed ids, (members, room).
    real
        Flags of places with a token, (members, room).
    seeds
        The seed of each member.
    step
        The number of the step.
    count
        The number of places to choose.
    vocabulary
        The number of tokens; other tokens are drawn from them.
    """
    place = torch.arange(ids.shape[1], device=ids.device)
    own = keys(seeds, step)[:, None]
    maskable = real & (ids >= FIRST_TOKEN)
    chosen = _smallest(torch.where(maskable, hashed(own, "mask", place), _LARGEST), count)
    kind, other = (hashed(own, name, chosen) for name in ("kind of mask", "other token"))
    asked = ids.gather(1, chosen)
    replaced = torch.where(kind < int(_AS_OTHER * _LARGEST), FIRST_TOKEN + other % (vocabulary - FIRST_TOKEN), asked)
    replaced = torch.where(kind < int(_AS_MASK * _LARGEST), MASK, replaced)
    there = maskable.gather(1, chosen)
    return Masked(ids.scatter(1, chosen, torch.where(there, replaced, asked)), chosen, asked, there)


def _smallest(numbers: Tensor, count: int) -> Tensor:
    """Return the places of the `count` smallest numbers of each row; of equal numbers, the first ones."""
    width = numbers.shape[1]
    unequal = numbers * width + torch.arange(width, device=numbers.device)
    return unequal.topk(min(count, width), dim=1, largest=False).indices


@dataclass(frozen=True)
class FixedMask:
    """The mask of a split, the same for all members and in every epoch."""

    #: the tokens that are read, and flags of those that are predicted
    ids: Tensor
    chosen: Tensor

    def of(self, ids: Tensor, at: Tensor, scored: Tensor, count: int) -> Masked:
        """Return the batch whose tokens `ids` stand `at` these places of the split; `scored` ones are predicted."""
        wanted = self.chosen[at] & scored
        chosen = _smallest((~wanted).to(torch.int64), count)
        return Masked(self.ids[at], chosen, ids.gather(1, chosen), wanted.gather(1, chosen))


def fixed_mask(
    tokens: npt.NDArray[np.int64], split: str, rate: float, vocabulary: int, device: Any = "cpu"
) -> FixedMask:
    """Return the mask of a split. Only its name and its tokens decide it."""
    rng = stream(0, f"mask of {split}")
    chosen = (rng.random(len(tokens)) < rate) & (tokens >= FIRST_TOKEN)
    kind, other = rng.random(len(tokens)), rng.integers(FIRST_TOKEN, vocabulary, len(tokens))
    replaced = np.where(kind < _AS_MASK, MASK, np.where(kind < _AS_OTHER, other, tokens))
    ids = np.where(chosen, replaced, tokens)
    return FixedMask(torch.from_numpy(ids).to(device), torch.from_numpy(chosen).to(device))
