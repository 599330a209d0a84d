"""Hosts: the models that a matrix is made for, known by name or read from a checkpoint, a config or a model."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, Unavailable, closest
from embinit.hub import (
    download,
    embedding_of,
    is_base_model,
    is_config,
    is_embedding,
    is_id,
    is_linear,
    is_model,
    uncompiled,
)
from embinit.sources.checkpoint import NoWeights, weights_of
from embinit.sources.repositories import Folder, Hub
from embinit.text.token_files import read_json_object
from embinit.types import Host, NumberFormat

#: Names of the embedding's dimension in configs.
_DIMENSION_KEYS = ("embedding_size", "word_embed_proj_dim", "hidden_size", "d_model", "n_embd", "dim")
_EXPECTED = "(or a folder with a config.json, a hub id, or a model of transformers)"
#: Names of settings that only models with rotary positions have.
_ROTARY_KEYS = ("rope_parameters", "rope_theta", "rope_scaling")
#: Endings of the names of tensors that hold learned positions.
_POSITION_ENDINGS = ("position_embeddings.weight", "wpe.weight", "embed_positions.weight")


class UnknownModelType(EmbinitError):
    """The config of a model has a type that no known model stands for."""


@cache
def _known_hosts() -> dict[str, Any]:
    return tomllib.loads(resources.files("embinit").joinpath("hosts.toml").read_text("utf-8"))


def _known_host(name: str, scaled: bool | None = None) -> Host:
    """Return a known model; its description tells whether rows are multiplied, which a config may change."""
    known = Host(name=name, **_known_hosts()[name])
    scaled = known.scaled if scaled is None else scaled
    return replace(known, scaled=scaled, about=known.about.format(rows="rows × √D" if scaled else "rows"))


def host_names() -> list[str]:
    """Return the names of the known models."""
    return [name for name in _known_hosts() if name != "model_types"]


def host(spec: Any = "tutorial") -> Host:
    """Return the host of a model: a known name, a folder with a config.json, a hub id, or an object of transformers.

    A config tells everything but the size of learned positions; a model or a folder with weights tells that too. A bare
    layer (`torch.nn.Embedding`, `torch.nn.Linear`) tells only its dimension, so the rest is that of `tutorial`, the default.

    >>> host("gpt2").positions
    'learned'
    """
    if isinstance(spec, Host):
        return spec
    spec = uncompiled(spec)
    if is_model(spec):
        return _host_of_model(spec)
    if is_config(spec):
        return _described(spec.to_dict(), _name_of(spec))
    if is_embedding(spec) or is_linear(spec):
        return replace(host(), dim=int(spec.weight.shape[1]))
    if not isinstance(spec, str | Path):
        raise EmbinitError(f"a model is a known name {_EXPECTED}, not {type(spec).__name__}")
    spec = str(spec)
    if spec in host_names():
        return _known_host(spec)
    path = Path(spec)
    try:
        if (path / "config.json").is_file():
            config = read_json_object(path / "config.json")
            return _described(config, spec, lambda: _learned_position_rms(Folder(path)))
        if path.is_dir():
            raise EmbinitError(f"{spec} is no model folder: it has no config.json")
    except OSError:  # the text is too long for a path
        raise EmbinitError(f"unknown model {spec[:80]!r} {_EXPECTED}") from None
    return _host_on_hub(spec)


def _host_on_hub(spec: str) -> Host:
    """Return the host of a model on the hub; a name that is close to a known one is a typing error."""
    hint = closest(spec, host_names())
    unknown = f"unknown model {spec!r}{hint} {_EXPECTED}"
    if "did you mean" in hint or not is_id(spec, owned=False):
        raise EmbinitError(unknown)
    repository, _, revision = spec.partition("@")
    try:
        config = read_json_object(download(repository, "config.json", revision or None, "model"))
    except Unavailable as reason:
        raise EmbinitError(f"{unknown}: {reason}") from None
    return _described(config, spec, lambda: _learned_position_rms(Hub(spec)))


def _host_of_model(model: Any) -> Host:
    described = _described(model.config.to_dict(), _name_of(model), lambda: _model_position_rms(model))
    rows, head = embedding_of(model).weight, model.get_output_embeddings()
    tied = described.tied if head is None else head.weight is rows
    outside = head is None and is_base_model(model)
    headless = head is None and not outside
    return replace(described, tied=tied, headless=headless, output_outside=outside, dim=int(rows.shape[1]))


def _name_of(value: Any) -> str:
    """Return the folder or hub id that a config or a model came from, or its class."""
    return str(getattr(value, "name_or_path", "")) or type(value).__name__


def _known_type(config: dict[str, Any], source: str) -> str:
    """Return the known model that a config's type behaves like; a type that is not known is judged by its positions."""
    model_type = str(config.get("model_type", ""))
    types_of = _known_hosts()["model_types"]  # name of a known host -> model types of checkpoints
    known: str | None = next((name for name, types in types_of.items() if model_type in types), None)
    if known is None and any(config.get(key) for key in _ROTARY_KEYS):
        return "llama"
    if known is None and isinstance(config.get("encoder"), dict) and isinstance(config.get("decoder"), dict):
        raise EmbinitError(
            f"{source}: a model of the type {model_type!r} holds two models; give one of them: model.encoder or "
            "model.decoder"
        )
    if known is None:
        raise UnknownModelType(
            f"{source}: unknown model type {model_type!r}; name the known model that it is most like "
            f"({', '.join(host_names())}) with host=, or in the command line with --model or `embinit apply --like`"
        )
    return known


def _described(
    config: dict[str, Any], source: str, learned_position_rms: Callable[[], float | None] = lambda: None
) -> Host:
    """Return the host that a config describes. The size of its positions is measured if they are learned."""
    inner = config.get("text_config")
    config = inner if isinstance(inner, dict) and inner.get("model_type") else config
    known = _known_type(config, source)
    scaled = config.get("scale_embedding")
    base = _known_host(known, None if scaled is None else bool(scaled))
    numbers: NumberFormat = base.numbers
    dtype = str(config.get("dtype") or config.get("torch_dtype") or "").removeprefix("torch.")
    if dtype in ("float32", "bfloat16", "float16"):
        numbers = dtype  # type: ignore[assignment]
    measured_rms = learned_position_rms() if base.positions == "learned" else None
    initial = config.get("initializer_range") or config.get("init_std") or base.initial
    return replace(
        base,
        name=f"{Path(source).name} ({config.get('model_type', '')})",
        tied=bool(config.get("tie_word_embeddings", base.tied)),
        numbers=numbers,
        initial=base.initial if known == "t5" else initial,
        position_rms=base.position_rms if measured_rms is None else measured_rms,
        about=base.about if config.get("model_type") == known else f"like {known}: {base.about}",
        dim=next((int(config[key]) for key in _DIMENSION_KEYS if isinstance(config.get(key), int)), None),
        position_rms_assumed=base.positions == "learned" and measured_rms is None,
    )


def _model_position_rms(model: Any) -> float | None:
    weights = dict(model.named_parameters())
    names = [name for name in weights if name.endswith(_POSITION_ENDINGS)]
    if not names:
        return None
    return float(weights[min(names, key=len)].detach().double().pow(2).mean().sqrt())


def _learned_position_rms(repository: Folder | Hub) -> float | None:
    """Return the root mean square of a checkpoint's learned positions; None if it has no such tensor."""
    try:
        weights = weights_of(repository)
    except NoWeights:
        return None
    names = [name for name in weights.file_of if name.endswith(_POSITION_ENDINGS)]
    if not names:
        return None
    name = min(names, key=len)
    rms = float((weights.rows(name).astype("float64") ** 2).mean() ** 0.5)
    if not 0 < rms < float("inf"):
        raise EmbinitError(f"{repository.name}: {name} is damaged: its root mean square is {rms}")
    return rms
