"""Random generators that are named by their purpose."""

from __future__ import annotations

import hashlib

import numpy as np

from embinit.errors import EmbinitError


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Return a generator that depends only on the seed and the purpose, not on other draws.

    >>> float(stream(1, "rows").random()) == float(stream(1, "rows").random())
    True
    """
    if seed < 0:
        raise EmbinitError(f"seed {seed} is negative; give 0 or a larger number")
    digest = hashlib.sha256(purpose.encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))
