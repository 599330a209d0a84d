"""The recipes that have a name, as `named.toml` lists them."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources


@cache
def named_recipes() -> dict[str, dict[str, str]]:
    """Return the steps, the description and the place in the paper of each recipe that has a name."""
    return tomllib.loads(resources.files("embinit.recipes").joinpath("named.toml").read_text("utf-8"))
