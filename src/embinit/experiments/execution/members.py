"""Turn specs into members and train them side by side. No other module of experiments uses models and training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embinit.experiments.execution.starts import Start
from embinit.experiments.runs.weights import KeptWeights, WeightFacts
from embinit.experiments.spec import Spec
from embinit.models.architecture import Architecture
from embinit.prepared.folder import Prepared
from embinit.training.options import Training

if TYPE_CHECKING:
    from embinit.training.checkpoint import Unusable
    from embinit.training.loop import Moment, Outcome


def architecture_of(spec: Spec, prepared: Prepared) -> Architecture:
    """Return the model of a spec for its prepared task."""
    sizes = tuple(int(prepared.manifest["vocabularies"][side]) for side in prepared.sides)
    classes = {"classes": len(prepared.manifest["labels"])} if prepared.task == "classification" else {}
    return Architecture(task=prepared.task, vocabularies=sizes, **classes, **dict(spec.model))  # type: ignore[arg-type]


def training_of(spec: Spec) -> Training:
    """Return the training settings of a spec."""
    return Training(**dict(spec.training))


def train_members(
    prepared: Prepared,
    specs: Sequence[Spec],
    starts: Sequence[Start],
    device: str,
    progress: Callable[[Moment], None],
    checkpoint: Path,
    every: float,
    stopping: Callable[[], bool],
) -> Outcome:
    """Train members that differ only in seed, matrices and the settings of each member, and return the outcome."""
    from embinit.models.model import Member
    from embinit.training.loop import train

    trainings = [training_of(spec) for spec in specs]
    model = architecture_of(specs[0], prepared)
    members = [
        Member(
            seed=spec.seed,
            matrices=start.matrices,
            frozen=start.found if training.frozen_rows == "found" else None,
            found=start.found,
            output=start.output,
            dropout=dict(spec.model).get("dropout", model.dropout),
        )
        for spec, start, training in zip(specs, starts, trainings, strict=True)
    ]
    return train(prepared, model, members, trainings, device, progress, checkpoint, every, stopping)


def stopped() -> type[Exception]:
    """Return the exception that training raises when it stops on request."""
    from embinit.training.loop import Stopped

    return Stopped


def unusable() -> type[Unusable]:
    """Return the exception that training raises if it cannot go on from its checkpoint."""
    from embinit.training.checkpoint import Unusable

    return Unusable


def discard_checkpoint(folder: Path) -> bool:
    """Remove a group's last checkpoint; return whether an earlier one takes its place."""
    from embinit.training.checkpoint import discard

    return discard(folder)


def weights_of(outcome: Any, place: int, prepared: Prepared, spec: Spec) -> KeptWeights:
    """Return a member's weights with everything that is needed to use them elsewhere."""
    settings = prepared.manifest["settings"]
    tensors = {name: weight[place].detach().cpu().numpy() for name, weight in outcome.stack.weights.items()}
    facts: WeightFacts = {
        "architecture": asdict(architecture_of(spec, prepared)),
        "vocabularies": {side: list(prepared.vocabularies[side].tokens) for side in prepared.sides},
        "tokenizers": dict(zip(prepared.sides, settings["tokenizers"], strict=True)),
        "lower": bool(settings["lower"]),
        "key": spec.key,
    }
    return KeptWeights(tensors, facts)


def translated(outcome: Any, prepared: Prepared, split: str, device: str) -> list[list[list[str]]]:
    """Return each member's translation of a split as tokens."""
    from embinit.training.evaluation import translations

    return translations(outcome.stack, prepared, split, device)


def read_text(outcome: Any, prepared: Prepared, split: str, spec: Spec, device: str) -> list[tuple[float, int, int]]:
    """Return each member's summed loss in nats, its number of predictions, and that of right ones, on a running text."""
    from embinit.training.evaluation import text_sums

    sums = text_sums(outcome.stack, prepared, split, training_of(spec), device).tolist()
    return [(loss, int(count), int(right)) for loss, count, right in zip(*sums, strict=True)]


def predicted(outcome: Any, prepared: Prepared, split: str, device: str) -> list[list[int]]:
    """Return each member's predicted labels of a split."""
    from embinit.training.evaluation import answers

    labels: list[list[int]] = answers(outcome.stack, prepared, split, device).tolist()
    return labels
