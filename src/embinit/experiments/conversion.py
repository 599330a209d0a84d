"""Write a trained language model as a folder for transformers, load it again, and compare the two."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, require
from embinit.experiments.runs.weights import KeptWeights, read_weights
from embinit.export.resize import quiet
from embinit.files import replacing_folder
from embinit.records import Damaged, typed
from embinit.text.tokenizers import tokenizer

#: The accepted difference of logits, as a share of the largest one.
_TOLERANCE = 1e-4
_BLOCKS = 4
#: Both tokenizers must split these lines alike.
_LINES = ("A small example .", "two  words\tapart", "Ünïcödé 1,000 %")
_SPECIALS = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<eos>", "eos_token": "<eos>"}


@dataclass(frozen=True)
class Converted:
    """A written folder and the facts about its model."""

    path: Path
    #: the class of transformers
    model: str
    parameters: int
    tokens: int
    #: the largest difference between the logits of this package and those of the loaded folder
    difference: float
    #: whether the folder has a tokenizer; without one it has only the vocabulary
    tokenizer: bool


def convert(run: Path, out: Path) -> Converted:
    """Write the best weights of a run as a folder for transformers, load it again and compare the logits.

    Parameters
    ----------
    run
        The folder of a run that was trained with `--keep-weights`.
    out
        The folder to write; it must not exist.

    Raises
    ------
    EmbinitError
        If the run has no weights, transformers has no class for its model, or the logits differ.
    """
    weights = read_weights(run)
    architecture = architecture_of(weights, run)
    check_shapes(weights, architecture, run)
    if not architecture.is_language_model:
        raise EmbinitError(f"{run} is a {architecture.task}; only language models can be converted")
    transformers = require("transformers", "train", "writing a folder for transformers")
    torch = require("torch", "train", "writing a folder for transformers")
    from embinit.models.conversion import transformers_model, transformers_weights

    described = transformers_model(architecture)
    own = {name: torch.from_numpy(values) for name, values in weights.tensors.items()}
    kind = getattr(transformers, described.name)
    model = kind(kind.config_class(**described.config))
    model.load_state_dict(_checked(transformers_weights(architecture, own), model, run))
    tokens = weights.facts["vocabularies"]["text"]
    with quiet(), replacing_folder(out) as folder:
        model.save_pretrained(folder)
        (folder / "vocabulary.json").write_text(json.dumps(tokens, ensure_ascii=False), "utf-8")
        has_tokenizer = _write_tokenizer(weights, described.config, folder)
        auto = "AutoModelForCausalLM" if architecture.task == "language_model" else "AutoModelForMaskedLM"
        loaded = getattr(transformers, auto).from_pretrained(folder).eval()
        difference = _difference(architecture, own, loaded)
    return Converted(
        out, described.name, sum(p.numel() for p in model.parameters()), len(tokens), difference, has_tokenizer
    )


def architecture_of(weights: KeptWeights, run: Path) -> Any:
    """Return the architecture that kept weights belong to."""
    from embinit.models.architecture import Architecture

    try:
        values = typed(weights.facts["architecture"], Architecture)
        return Architecture(**{**values, "vocabularies": tuple(values["vocabularies"])})
    except EmbinitError as error:
        raise Damaged(f"{run} has weights of a model that this version of embinit does not know: {error}") from None


def check_shapes(weights: KeptWeights, architecture: Any, run: Path) -> None:
    """Raise Damaged unless the tensors are those of the architecture, before a model of its size is made."""
    from embinit.models.parameters import parameters

    for side, size in zip(architecture.sides, architecture.vocabularies, strict=True):
        tokens = weights.facts["vocabularies"].get(side, [])
        if len(set(tokens)) != size or side not in weights.facts["tokenizers"]:
            raise Damaged(f"{run} has weights that do not fit its model: {size:,} rows and {len(tokens):,} tokens")
    if architecture.layers > len(weights.tensors):
        raise Damaged(f"{run} has weights that do not fit its model: it has {architecture.layers:,} layers")
    shapes = {parameter.name: parameter.shape for parameter in parameters(architecture)}
    for side, size in zip(architecture.sides, architecture.vocabularies, strict=True):
        shapes[f"{side}.embedding"] = (size, architecture.dim)
    stored = {name: values.shape for name, values in weights.tensors.items()}
    wrong = [name for name in {**shapes, **stored} if shapes.get(name) != stored.get(name)]
    if wrong:
        raise Damaged(f"{run} has weights that do not fit its model: {wrong[0]}")


def _checked(named: dict[str, Any], model: Any, run: Path) -> dict[str, Any]:
    """Return the state of a model with these weights; raise Damaged if a weight is missing or has another shape."""
    wanted = model.state_dict()
    parameters = dict(model.named_parameters())
    wrong = [name for name, value in named.items() if name not in wanted or wanted[name].shape != value.shape]
    lacking = [name for name in parameters if name not in named]
    if wrong or lacking:
        raise Damaged(f"{run} has weights that do not fit its model: {(wrong + lacking)[0]}")
    return {**wanted, **named}


def _difference(architecture: Any, own: dict[str, Any], loaded: Any) -> float:
    """Return the largest difference of logits on random blocks; an error if it is more than rounding."""
    import torch

    from embinit.models.model import Member, Stack
    from embinit.models.packing import full_layout

    stacked = {name: values[None] for name, values in own.items()}
    stack = Stack(architecture, [Member(0, ())], weights=stacked)
    length, rows = min(architecture.length, 64), architecture.vocabularies[0]
    # <pad> has no meaning here, and transformers treats it in its own way.
    ids = torch.randint(2, rows, (_BLOCKS, length), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        ours = stack.output(stack.model_text(ids.view(1, -1), full_layout(1, _BLOCKS, length)))[0]
        theirs = loaded(ids).logits.flatten(0, 1)
    difference = float((ours - theirs).abs().max())
    if not difference <= _TOLERANCE * max(1.0, float(ours.abs().max())):
        raise EmbinitError(f"the written folder gives other logits than the run: they differ by {difference:.2g}")
    return difference


def _write_tokenizer(weights: KeptWeights, config: dict[str, Any], folder: Path) -> bool:
    """Write a tokenizer that splits text as the run did; return whether such a tokenizer exists.

    A sub-word tokenizer is not written, because the run's vocabulary is a reordered part of the tokenizer's vocabulary.
    """
    transformers = require("transformers", "train", "writing a tokenizer")
    spec, tokens = weights.facts["tokenizers"]["text"], weights.facts["vocabularies"]["text"]
    split = _splitting(spec)
    if split is None:
        return False
    import tokenizers

    splitter = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="<unk>")
    )
    splitter.pre_tokenizer = split
    if weights.facts["lower"]:
        splitter.normalizer = tokenizers.normalizers.Lowercase()
    specials = {**_SPECIALS, **({"mask_token": "<mask>"} if tokens[4:5] == ["<mask>"] else {})}
    length = config.get("n_positions") or config.get("max_position_embeddings")
    whole = transformers.PreTrainedTokenizerFast(tokenizer_object=splitter, model_max_length=length, **specials)
    number = {token: i for i, token in enumerate(tokens)}
    split_line = tokenizer(spec)
    for line in _LINES:
        (pieces,) = split_line([line.lower() if weights.facts["lower"] else line])
        if whole(line, add_special_tokens=False)["input_ids"] != [number.get(piece, 0) for piece in pieces]:
            return False
    whole.save_pretrained(folder)
    return True


def _splitting(spec: str) -> Any:
    """Return the pre-tokenizer of the library `tokenizers` that splits text like this one; None if there is none."""
    from tokenizers import Regex, pre_tokenizers

    each = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    if spec == "whitespace":
        return pre_tokenizers.WhitespaceSplit()
    if spec == "characters":
        return each
    if spec == "bytes":
        return pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), each])
    return None
