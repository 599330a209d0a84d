"""Experiments and results that tests make: plausible numbers, every one a function of its arguments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embinit.experiments.experiment import Block, Experiment, Planned
from embinit.experiments.runs.result import Result
from embinit.experiments.spec import Side, Spec, Task

RECIPES = ("xavier", "pretrained", "pretrained_xavier", "pretrained_shuffled")
#: BLEU that each recipe reaches, epochs it takes, σ of its matrix.
LEVELS = {"xavier": 37.3, "pretrained": 34.1, "pretrained_xavier": 38.7, "pretrained_shuffled": 33.2}
PACE = {"xavier": 3.0, "pretrained": 6.0, "pretrained_xavier": 2.4, "pretrained_shuffled": 6.5}
SPREADS = {"xavier": 0.0157, "pretrained": 0.378, "pretrained_xavier": 0.0157, "pretrained_shuffled": 0.378}
SENTENCES = (
    "a man in an orange hat staring at something .",
    "a boston terrier is running on lush green grass in front of a white fence .",
    "a girl in karate uniform breaking a stick with a front kick .",
    "five people wearing winter jackets and helmets stand in the snow , with snowmobiles in the background .",
    "people are fixing the roof of a house .",
    "a man in light colored clothing photographs a group of men wearing dark suits and hats standing around a woman .",
)


def spec(recipe: str = "xavier", seed: int = 0, task: str = "multi30k", **settings: Any) -> Spec:
    model = {"dim": 300, "heads": 10, "layers": 3, "norm": "post", "positions": "sinusoidal", "scaled": True}
    training = {"epochs": 12, "batch": 64, "rate": 2e-4, "frozen_epochs": 0}
    for name, value in settings.items():
        place = model if name in ("dim", "heads", "layers", "norm", "positions", "scaled") else training
        place[name] = value
    side = Side("" if recipe.startswith(("xavier", "normal")) else "glove", recipe)
    translation = task in ("multi30k", "iwslt2017", "captions")
    sides = (("source", side), ("target", side)) if translation else (("text", side),)
    pair = "de-en" if translation else None
    return Spec(Task(task, pair), sides, seed, tuple(sorted(model.items())), tuple(sorted(training.items())))


def result(spec: Spec, score: float, *, diverged: bool = False, outputs: bool = True, split: str = "") -> Result:
    """Return a run that ended with this score; a diverged one has none."""
    translation = len(spec.sides) == 2
    recipe = spec.sides[0][1].recipe
    name, where = ("bleu", split or "test") if translation else ("accuracy", split or "valid")
    epochs = int(dict(spec.training)["epochs"])
    pace, rng = PACE.get(recipe, 3.0), np.random.default_rng(spec.seed)
    history: list[dict[str, float | None]] = []
    for epoch in range(1, epochs + 1):
        reached = score * (1 - math.exp(-epoch / pace)) + float(rng.normal(0, 0.15)) * (1 if translation else 0.01)
        loss = 1.6 + 2.5 * math.exp(-epoch / pace) + 0.01 * max(0, epoch - 8) + float(rng.normal(0, 0.01))
        record = {"train loss": loss - 0.2, "valid loss": loss, name: reached, "σ, source": 0.016 + 0.001 * epoch}
        history.append(dict.fromkeys(record) if diverged and epoch > 2 else dict(record))
    scores = {name: score, "sacrebleu": score - 2} if translation else {name: score, "macro_f1": score - 0.01}
    return Result(
        spec=spec,
        history=history,
        best_epoch=0 if diverged else min(epochs, 8 + spec.seed % 3),
        diverged=diverged,
        scores={} if diverged else {where: scores},
        signatures={name: "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.5.1"} if translation else {},
        matrices={side: matrix(recipe) for side, _ in spec.sides},
        outputs={where: spoken(recipe, spec.seed)} if outputs and translation else {},
        run={
            "device": "NVIDIA H200",
            "versions": {"torch": "2.6.0", "embinit": "0.1.0", "sacrebleu": "2.5.1"},
            "seconds": 250.0,
            "members": 20,
            "commit": "0123abc",
            "finished": f"2025-01-02T03:04:{spec.seed % 60:02d}",
        },
    )


def matrix(recipe: str) -> dict[str, Any]:
    std = SPREADS.get(recipe, 0.1)
    uniform = recipe.startswith("xavier")
    edges = np.linspace(-1.7 * std if uniform else -9 * std, 1.7 * std if uniform else 9 * std, 41)
    middle = (edges[1:] + edges[:-1]) / 2
    counts = np.full(40, 1000) if uniform else np.round(1e5 * np.exp(-np.abs(middle) / std * 1.4))
    return {
        "mean": 0.0016,
        "std": std,
        "min": float(edges[0]),
        "max": float(edges[-1]),
        "rows": 7853,
        "dim": 300,
        "histogram": {"counts": [int(count) for count in counts], "edges": edges.tolist()},
        "coverage": None if uniform else {"types": 0.912, "tokens": 0.987},
        "kinds": {} if uniform else {"exact": 7000, "lower": 162, "missing": 691},
    }


def spoken(recipe: str, seed: int) -> list[str]:
    """Return sentences that get worse with the recipe: one word left out, or two."""
    drop = {"xavier": 1, "pretrained": 3, "pretrained_xavier": 0}.get(recipe, 4)
    lines = []
    for number, sentence in enumerate(SENTENCES):
        words = sentence.split()
        for k in range(drop):
            del words[(number * 7 + seed + k * 3) % len(words)]
        lines.append(" ".join(words))
    return lines


def noise(recipe: str, seed: int) -> float:
    """Return the same noise for a recipe and seed always, half of it the seed's own."""
    shared = np.random.default_rng(seed).normal(0, 0.25)
    own = np.random.default_rng([seed, *recipe.encode()]).normal(0, 0.2)
    return float(shared + own)


def block(
    name: str = "Multi30k, GloVe",
    recipes: Sequence[str] = RECIPES,
    seeds: Iterable[int] = range(5),
    task: str = "multi30k",
    **fields: Any,
) -> Block:
    translation = task in ("multi30k", "iwslt2017", "captions")
    runs = tuple(Planned(spec(recipe, seed, task), (("recipe", recipe),)) for recipe in recipes for seed in list(seeds))
    defaults: dict[str, Any] = {
        "score": "bleu" if translation else "accuracy",
        "split": "test" if translation else "valid",
        "paper": ("1", task, "glove"),
        "sources": (("glove", "GloVe 840B, 300 dimensions"),),
    }
    return Block(name, runs, **{**defaults, **fields})


def experiment(*blocks: Block, **fields: Any) -> Experiment:
    defaults: dict[str, Any] = {
        "name": "made",
        "title": "Which start is best?",
        "question": "Do pre-trained vectors help a small transformer, and does their scale matter?",
    }
    return Experiment(blocks=blocks or (block(),), **{**defaults, **fields})


def results(*blocks: Block, levels: dict[str, float] | None = None) -> dict[str, Result]:
    """Return a result for each planned run, at its recipe's level and the seed's noise."""
    found = {}
    for one in blocks or (block(),):
        for planned in one.runs:
            recipe = planned.spec.sides[0][1].recipe
            level = (levels or LEVELS).get(recipe, 30.0) + noise(recipe, planned.spec.seed)
            score = level if len(planned.spec.sides) == 2 else (45 + level) / 100
            found[planned.spec.key] = result(planned.spec, score, split=one.split)
    return found


def crossed(
    levels: dict[tuple[str, ...], float], axes: Sequence[str], seeds: Iterable[int] = range(4), **fields: Any
) -> tuple[Block, dict[str, Result]]:
    """Return a block over several axes, the last of them the recipe, and its results; a level of NaN has none."""
    runs, found = [], dict[str, Result]()
    listed = list(seeds)
    for values, level in levels.items():
        for seed in listed:
            given = dict(zip(axes, values, strict=True))
            settings = {axis.rpartition(".")[2]: value for axis, value in given.items() if axis.startswith("model.")}
            settings |= {
                axis.rpartition(".")[2]: int(value) for axis, value in given.items() if axis.startswith("training.")
            }
            one = spec(values[-1], seed, **settings)
            if "ratio" in given:
                one = replace(one, sides=tuple((name, replace(side, steps=str(values))) for name, side in one.sides))
            runs.append(Planned(one, tuple(zip(axes, values, strict=True))))
            if not math.isnan(level):
                found[one.key] = result(one, level + noise(str(values), seed))
    defaults: dict[str, Any] = {"score": "bleu", "split": "test"}
    return Block(str(fields.pop("name", "made")), tuple(runs), **{**defaults, **fields}), found


def sweep_of(axis: str, values: dict[str, float]) -> tuple[Block, dict[str, Result]]:
    """Return a block that sweeps an axis, and results near these levels."""
    runs, found = [], {}
    for name, level in values.items():
        for seed in range(4):
            made = spec(name if axis == "recipe" else f"normal std={name}", seed)
            runs.append(Planned(made, ((axis, name),)))
            found[made.key] = result(made, level + noise(name, seed))
    return Block("sweep", tuple(runs), "bleu", "test", sweep=axis), found
