"""What an embedding meets next: known models, and any checkpoint's folder."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, closest
from embinit.sources.checkpoint import NoWeights, weights_of
from embinit.sources.repositories import Folder
from embinit.types import Host, NumberFormat

#: What configs call the dimension of the embedding.
_DIMENSIONS = ("embedding_size", "hidden_size", "d_model", "n_embd", "dim")
#: Endings of the tensors that hold learned positions.
_POSITIONS = ("position_embeddings.weight", "wpe.weight", "embed_positions.weight")


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(resources.files("embinit").joinpath("hosts.toml").read_text("utf-8"))


def names() -> list[str]:
    """Return the models known by name."""
    return [name for name in _data() if name != "model_types"]


def host(spec: str | Path = "tutorial") -> Host:
    """Return what rows meet in a model: known by name, or told from the config of a checkpoint's folder."""
    spec = str(spec)
    if spec in names():
        return Host(name=spec, **_data()[spec])
    path = Path(spec)
    if (path / "config.json").is_file():
        return _from_folder(path)
    raise EmbinitError(f"unknown model {spec!r}{closest(spec, names())} (or a folder with a config.json)")


def _from_folder(path: Path) -> Host:
    try:
        config: dict[str, Any] = json.loads((path / "config.json").read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise EmbinitError(f"{path}/config.json cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise EmbinitError(f"{path}/config.json is no map of settings")
    kind = str(config.get("model_type", ""))
    known = next((name for name, kinds in _data()["model_types"].items() if kind in kinds), None)
    if known is None:
        types = [kind for kinds in _data()["model_types"].values() for kind in kinds]
        raise EmbinitError(f"{path}: model type {kind!r} is not known{closest(kind, types)}")
    base = host(known)
    numbers: NumberFormat = base.numbers
    named = str(config.get("dtype") or config.get("torch_dtype") or "")
    if named in ("float32", "bfloat16", "float16"):
        numbers = named  # type: ignore[assignment]
    own_rms = _learned_rms(path) if base.positions == "learned" else None
    initial = config.get("initializer_range") or config.get("init_std") or base.initial
    return replace(
        base,
        name=f"{path.name} ({kind})",
        scaled=bool(config.get("scale_embedding", base.scaled)),
        tied=bool(config.get("tie_word_embeddings", base.tied)),
        numbers=numbers,
        initial=base.initial if known == "t5" else initial,
        position_rms=base.position_rms if own_rms is None else own_rms,
        about=f"{path}, like {known}: {base.about}",
        dim=next((int(config[name]) for name in _DIMENSIONS if isinstance(config.get(name), int)), None),
        position_rms_assumed=base.positions == "learned" and own_rms is None,
    )


def _learned_rms(path: Path) -> float | None:
    """Return the rms of the checkpoint's own learned positions; None where it has none."""
    try:
        weights = weights_of(Folder(path))
    except NoWeights:
        return None
    names = [name for name in weights.where if name.endswith(_POSITIONS)]
    if not names:
        return None
    name = min(names, key=len)
    rms = float((weights.rows(name).astype("float64") ** 2).mean() ** 0.5)
    if not 0 < rms < float("inf"):
        raise EmbinitError(f"{path}: {name} is damaged: its root mean square is {rms}")
    return rms
