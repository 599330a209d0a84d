"""Hosts: the models that a matrix is made for, known by name or read from the folder of a checkpoint."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, closest
from embinit.sources.checkpoint import NoWeights, weights_of
from embinit.sources.repositories import Folder
from embinit.text.token_files import read_json_object
from embinit.types import Host, NumberFormat

#: Names of the embedding's dimension in configs.
_DIMENSION_KEYS = ("embedding_size", "hidden_size", "d_model", "n_embd", "dim")
#: Endings of the names of tensors that hold learned positions.
_POSITION_ENDINGS = ("position_embeddings.weight", "wpe.weight", "embed_positions.weight")


@cache
def _known_hosts() -> dict[str, Any]:
    return tomllib.loads(resources.files("embinit").joinpath("hosts.toml").read_text("utf-8"))


def host_names() -> list[str]:
    """Return the names of the known models."""
    return [name for name in _known_hosts() if name != "model_types"]


def host(spec: str | Path = "tutorial") -> Host:
    """Return the host with this name, or the host that the config in a checkpoint's folder describes."""
    spec = str(spec)
    if spec in host_names():
        return Host(name=spec, **_known_hosts()[spec])
    path = Path(spec)
    if (path / "config.json").is_file():
        return _host_from_folder(path)
    raise EmbinitError(f"unknown model {spec!r}{closest(spec, host_names())} (or a folder with a config.json)")


def _host_from_folder(path: Path) -> Host:
    config = read_json_object(path / "config.json")
    model_type = str(config.get("model_type", ""))
    types_of = _known_hosts()["model_types"]  # name of a known host -> model types of checkpoints
    known = next((name for name, types in types_of.items() if model_type in types), None)
    if known is None:
        types = [model_type for types in types_of.values() for model_type in types]
        raise EmbinitError(f"{path}: unknown model type {model_type!r}{closest(model_type, types)}")
    base = host(known)
    numbers: NumberFormat = base.numbers
    dtype = str(config.get("dtype") or config.get("torch_dtype") or "")
    if dtype in ("float32", "bfloat16", "float16"):
        numbers = dtype  # type: ignore[assignment]
    measured_rms = _learned_position_rms(path) if base.positions == "learned" else None
    initial = config.get("initializer_range") or config.get("init_std") or base.initial
    return replace(
        base,
        name=f"{path.name} ({model_type})",
        scaled=bool(config.get("scale_embedding", base.scaled)),
        tied=bool(config.get("tie_word_embeddings", base.tied)),
        numbers=numbers,
        initial=base.initial if known == "t5" else initial,
        position_rms=base.position_rms if measured_rms is None else measured_rms,
        about=f"{path}, like {known}: {base.about}",
        dim=next((int(config[key]) for key in _DIMENSION_KEYS if isinstance(config.get(key), int)), None),
        position_rms_assumed=base.positions == "learned" and measured_rms is None,
    )


def _learned_position_rms(path: Path) -> float | None:
    """Return the root mean square of the checkpoint's learned positions; None if the folder has no such tensor."""
    try:
        weights = weights_of(Folder(path))
    except NoWeights:
        return None
    names = [name for name in weights.file_of if name.endswith(_POSITION_ENDINGS)]
    if not names:
        return None
    name = min(names, key=len)
    rms = float((weights.rows(name).astype("float64") ** 2).mean() ** 0.5)
    if not 0 < rms < float("inf"):
        raise EmbinitError(f"{path}: {name} is damaged: its root mean square is {rms}")
    return rms
