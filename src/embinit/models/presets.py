"""Presets: named models as plain values of `model.*` and `training.*` (presets.toml)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from embinit.errors import EmbinitError, closest


@dataclass(frozen=True)
class Preset:
    """The values that a preset's name stands for."""

    name: str
    about: str
    model: dict[str, Any]
    training: dict[str, Any]


@cache
def presets() -> dict[str, Preset]:
    """Return all presets by name."""
    content = tomllib.loads(resources.files("embinit.models").joinpath("presets.toml").read_text("utf-8"))
    return {
        name: Preset(name, values["about"], _plain(values["model"]), _plain(values["training"]))
        for name, values in content.items()
    }


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def preset(name: str) -> Preset:
    """Return a preset, or raise with the closest name."""
    if name not in presets():
        raise EmbinitError(f"unknown preset {name!r}{closest(name, presets())}; presets: {', '.join(presets())}")
    return presets()[name]
