"""The paper's numbers as data, and their comparison with ours."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from embinit.experiments.spec import Spec
from embinit.reports.scores import PaperScore
from embinit.statistics import MeanInterval

#: Table 7 adds a table row to blocks of Table 1, and Figure 1 shows runs like those of Table 1.
_SCORES = ("1", "7")
#: The scores that the paper prints.
SCORES = ("bleu", "accuracy")
_DISTRIBUTIONS = ("2", "8")
_NAMES = {"mbert": "bert", "mt5": "t5"}


@cache
def tables() -> dict[str, Any]:
    """Return every table of the paper, from `published.toml`."""
    return tomllib.loads(resources.files("embinit.reports.analysis").joinpath("published.toml").read_text("utf-8"))


def recipe_of(axes: Sequence[tuple[str, str]]) -> str:
    """Return the recipe that a row's axes name; empty if there is none, or if the two sides differ."""
    recipes = {value for axis, value in axes if is_recipe(axis)}
    return recipes.pop() if len(recipes) == 1 else ""


def is_recipe(axis: str) -> bool:
    """Return whether an axis is `recipe`, or one side's: `decoder.recipe`."""
    return axis.rpartition(".")[2] == "recipe"


def value(
    paper: Sequence[str], axes: Sequence[tuple[str, str]], split: str = "", spec: Spec | None = None
) -> dict[str, Any] | None:
    """Return the paper's table, mean, std, epoch and loss for a row of the block `paper`; None if it has no such row.

    `paper` is (table, task, embedding) in any spelling: ("Table 1", "SST-2", "mBERT"). `axes` are the axes on which the
    block's rows differ. `split` tells MNLI's two apart, and `spec` has the settings that are no axis.
    """
    if not paper:
        return None
    table, task, embedding = called(paper)
    recipe = recipe_of(axes) or (_recipe_of(spec) if spec is not None else "")
    others = {axis: text for axis, text in axes if not is_recipe(axis)}
    if table == "3":
        return _table3(recipe, others, spec)
    if others:
        return None
    for number in _SCORES:
        for block in tables()[f"table{number}"]:
            # `iwslt2017_test` is the test split of a second data set.
            right = split in ("", block["split"]) or split.endswith(f"_{block['split']}")
            if right and (block["task"], block["embedding"]) == (task, embedding) and recipe in block["rows"]:
                return {"table": f"Table {number}", **block["rows"][recipe]}
    return None


def _recipe_of(spec: Spec) -> str:
    recipes = {side.recipe for _, side in spec.sides}
    return recipes.pop() if len(recipes) == 1 else ""


def _table3(recipe: str, settings: dict[str, str], spec: Spec | None) -> dict[str, Any] | None:
    training, model = (dict(spec.training), dict(spec.model)) if spec is not None else ({}, {})
    frozen = settings.pop("training.frozen_epochs", str(training.get("frozen_epochs", 0)))
    positions = settings.pop("model.positions", str(model.get("positions", "sinusoidal")))
    if settings or frozen not in ("0", "-1") or positions not in ("none", "sinusoidal"):
        return None
    wanted = {"recipe": recipe, "trained": frozen == "0", "positions": positions == "sinusoidal"}
    for row in tables()["table3"]:
        if all(row[name] == text for name, text in wanted.items()):
            return {"table": "Table 3", **{name: row[name] for name in ("mean", "std", "epoch", "loss")}}
    return None


def distribution(paper: Sequence[str], recipe: str) -> dict[str, Any] | None:
    """Return the paper's min, max, mean and σ of the encoder's matrix (Tables 2, 6, 8); shuffling changes none of them."""
    if not paper:
        return None
    table, task, embedding = called(paper)
    recipe = "pretrained" if recipe == "pretrained_shuffled" else recipe
    if table == "6":
        matches = [row for row in tables()["table6"] if row["name"] == recipe and not row["scaled"]]
        return matches[0] if matches else None
    for number in _DISTRIBUTIONS:
        for block in tables()[f"table{number}"]:
            if block["task"] == task and block["embedding"] == embedding and recipe in block["rows"]:
                return dict(block["rows"][recipe])
    return None


def spread(paper: Sequence[str], recipe: str) -> float | None:
    """Return the σ that the paper prints for the encoder's matrix."""
    numbers = distribution(paper, recipe)
    return None if numbers is None else float(numbers["std"])


def comparable(paper: Sequence[str], spec: Spec, score: str) -> bool:
    """Return whether a score can be compared with the paper's: it needs all of the data and, for BLEU, the same tokens."""
    if not paper:
        return False
    _, task, embedding = called(paper)
    if task != _plain(spec.task.name) or spec.task.rows is not None:
        return False
    names = tables()["tokenizers"].get(embedding, ())
    return score != "bleu" or any(name in spec.task.tokenizer.lower() for name in names)


def beside(printed: dict[str, Any] | None, ours: MeanInterval | None, same: bool = True) -> PaperScore | None:
    """Return the paper's number with our difference to it. Within noise means that our interval reaches its mean ± σ.

    There is no difference unless data and tokens are the `same`.
    """
    if printed is None:
        return None
    mean, std = float(printed["mean"]), float(printed["std"])
    within = None
    if same and ours is not None and ours.low is not None and ours.high is not None:
        within = ours.low <= mean + std and mean - std <= ours.high
    return PaperScore(
        table=printed["table"],
        mean=mean,
        std=std,
        epoch=printed.get("epoch"),
        difference=ours.mean - mean if same and ours is not None else None,
        within=within,
        loss=printed.get("loss"),
    )


def called(paper: Sequence[str]) -> tuple[str, str, str]:
    """Return table, task and embedding of a block in one spelling: `1`, `multi30k`, `t5`."""
    plain = [_plain(word) for word in paper]
    table, task, embedding = (*plain, "", "", "")[:3]
    return table.removeprefix("table"), task, _NAMES.get(embedding, embedding)


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())
