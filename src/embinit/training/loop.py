"""The training loop: all members train side by side, and each keeps its best weights."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embinit.errors import EmbinitError
from embinit.models.architecture import Architecture
from embinit.models.model import Member, Stack, joined
from embinit.prepared.folder import Prepared
from embinit.training import checkpoint as checkpoints
from embinit.training.batches import Batches, Numbers, Rooms
from embinit.training.blocks import TextBatches
from embinit.training.evaluation import Validation
from embinit.training.fit import check_fit
from embinit.training.options import PER_MEMBER, Training, settings_of_each
from embinit.training.step import Trainer


class Stopped(EmbinitError):
    """Training stopped on request, and can continue from its checkpoint."""


@dataclass(frozen=True)
class Moment:
    """The progress of training; `records` has every member's record at the end of an epoch."""

    epoch: int
    epochs: int
    step: int
    steps: int
    seconds: float
    sentences_per_second: float
    records: list[dict[str, float]] | None = None


Progress = Callable[[Moment], None]


@dataclass
class TrainedMember:
    """The training of one member."""

    seed: int
    #: one record per epoch: losses, BLEU or accuracy, σ of the embeddings and of their change in the epoch
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = 0
    diverged: bool = False
    #: whether it stopped early, without improvement
    stopped: bool = False


@dataclass
class Outcome:
    """Members after training: the stack with each member's best weights, and the history of each."""

    stack: Stack
    members: list[TrainedMember]
    seconds: float


def train(
    prepared: Prepared,
    architecture: Architecture,
    members: Sequence[Member],
    training: Training | Sequence[Training],
    device: Any = "cpu",
    progress: Progress = lambda _: None,
    checkpoint: Path | None = None,
    every: float = 60.0,
    stopping: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Return members trained in lockstep; the best epoch is that of lowest validation loss, or of best accuracy.

    `training` holds the settings of all members, or of each: they may differ in those of `options.PER_MEMBER`.
    With a `checkpoint` folder, training continues from the checkpoint in it and writes one every `every` seconds (0: every
    epoch). If `stopping` returns true, a checkpoint is written and `Stopped` is raised.
    """
    check_fit(prepared, architecture, settings_of_each(training, len(members))[0])
    run = _Run(prepared, architecture, members, training, device)
    start = time.perf_counter()
    if checkpoint is not None:
        run.restore(checkpoint)
    saved, wait = time.perf_counter(), every
    while run.epoch < run.training.epochs and not all(member.stopped for member in run.outcome):
        for moment in run.finish_epoch(start):
            progress(moment)
            stop = stopping()
            ended = moment.records is not None
            due = ended if every == 0 else time.perf_counter() - saved >= wait
            if checkpoint is not None and (due or stop):
                before = time.perf_counter()
                run.save(checkpoint, run.seconds + before - start)
                saved = time.perf_counter()
                # Large checkpoints are written less often: at most one twentieth of the time goes into writing.
                wait = max(every, 20 * (saved - before))
            if stop:
                raise Stopped(f"stopped in epoch {moment.epoch} of {moment.epochs}")
    return Outcome(run.best(), run.outcome, run.seconds + time.perf_counter() - start)


@dataclass
class _Lane:
    """Members that share one stack."""

    stack: Stack
    trainer: Trainer
    #: the numbers of these members in the run
    places: list[int]
    best: dict[str, Tensor]
    orders: Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    rooms: list[Rooms] = field(default_factory=list)
    rows: Tensor = field(default_factory=lambda: torch.empty(0))
    #: the embeddings at the beginning of the epoch
    before: dict[str, Tensor] = field(default_factory=dict)


class _Run:
    """Members in training, and their progress."""

    def __init__(
        self, prepared: Prepared, architecture: Architecture, members: Sequence[Member],
        settings: Training | Sequence[Training], device: Any,
    ) -> None:  # fmt: skip
        self._trainings = settings_of_each(settings, len(members))
        #: the settings that members share are those of the first
        self.training = training = self._trainings[0]
        self.device = torch.device(device)
        torch.backends.cuda.matmul.allow_tf32 = training.precision != "float32"
        self.batches: Batches | TextBatches
        if architecture.is_language_model:
            rate = training.mask_rate
            self.batches = TextBatches(prepared, "train", training.batch, architecture.length, device, mask_rate=rate)
        else:
            self.batches = Batches(prepared, "train", training.batch, device, training.order)
        self.validation = Validation(prepared, architecture, training, len(members), self.device)
        self.outcome = [TrainedMember(member.seed) for member in members]
        self.epoch, self.step = 0, 0
        #: seconds of training before the checkpoint that this run continues
        self.seconds = 0.0
        self._members = members
        self._about = {
            "architecture": asdict(architecture),
            "training": asdict(training),
            "seeds": [member.seed for member in members],
            "rates": [(own.embedding_rate, own.found_rate) for own in self._trainings],
            "prepared": prepared.path.name,
        }
        # Checkpoints of earlier versions have only the rates of embeddings for each member, as "rates".
        names = [name for name in PER_MEMBER if name not in ("embedding_rate", "found_rate")]
        of_members = [
            {**own.values_of(names), "dropout": architecture.dropout if member.dropout is None else member.dropout}
            for member, own in zip(members, self._trainings, strict=True)
        ]
        if any(own != of_members[0] for own in of_members):
            self._about["own"] = of_members
        dtype = torch.bfloat16 if training.precision == "bfloat16" else torch.float32
        steps = len(self.batches) * training.epochs
        self.lanes = []
        for places in _lanes(len(members), self.device):
            sharing = [members[place] for place in places]
            stack = Stack(architecture, sharing, device, dtype, training.protected)
            trainer = Trainer(stack, [self._trainings[place] for place in places], self.batches, steps, sharing)
            best = {name: weight.detach().clone() for name, weight in stack.weights.items()}
            self.lanes.append(_Lane(stack, trainer, places, best))

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """Return the identity of the training for its checkpoint: settings, and a checksum of each member's start."""
        starts = [
            [[_checksum(array) for array in arrays or ()] for arrays in _arrays_of(member)] for member in self._members
        ]
        found: dict[str, Any] = json.loads(json.dumps({**self._about, "starts": starts}))
        return found

    def finish_epoch(self, start: float) -> Iterator[Moment]:
        """Yield moments until the epoch is over; the last one has the records."""
        if not self.lanes[0].rooms:
            self._begin_epoch()
        began, first, reported = time.perf_counter(), self.step, time.perf_counter()
        running = [lane for lane in self.lanes if not self._done(lane)]
        while self.step < len(self.batches):
            number = self.epoch * len(self.batches) + self.step
            for lane in running:
                lane.trainer.step(lane.rows[:, self.step], lane.rooms[self.step], number, self.epoch)
            self.step += 1
            now = time.perf_counter()
            if now - reported >= 1 and self.step < len(self.batches):
                reported = now
                yield self._moment(start, self._sentences(first) / (now - began))
        records = self._records()
        speed = self._sentences(first) / (time.perf_counter() - began)
        self._keep(records)
        self.epoch, self.step = self.epoch + 1, 0
        for lane in self.lanes:
            lane.rooms = []
        yield self._moment(start, speed, records)

    def _done(self, lane: _Lane) -> bool:
        return all(self.outcome[place].stopped for place in lane.places)

    def _sentences(self, first: int) -> int:
        """Return the number of sentences that all members have read in this epoch since step `first`."""
        read = min(self.step * self.batches.batch, self.batches.sentences) - first * self.batches.batch
        return read * sum(len(lane.places) for lane in self.lanes if not self._done(lane))

    def _begin_epoch(self) -> None:
        for lane in self.lanes:
            lane.orders = self.batches.orders([self.outcome[place].seed for place in lane.places], self.epoch)
            lane.rooms = self.batches.rooms(lane.orders)
            lane.rows = torch.from_numpy(lane.orders).to(self.device)
            lane.before = _embeddings(lane.stack)

    def _moment(self, start: float, speed: float, records: list[dict[str, float]] | None = None) -> Moment:
        epoch = self.epoch + (records is None)
        steps = len(self.batches)
        done = self.step if records is None else steps
        return Moment(
            epoch, self.training.epochs, done, steps, self.seconds + time.perf_counter() - start, speed, records
        )

    def _records(self) -> list[dict[str, float]]:
        """Return every member's record of an epoch; a stopped member keeps its last record."""
        records = [dict(member.history[-1]) if member.stopped else {} for member in self.outcome]
        every = self.training.bleu_every
        with_bleu = bool(every) and (self.epoch + 1) % every == 0
        for lane in self.lanes:
            if self._done(lane):
                continue
            sums = lane.trainer.sums
            columns = {"train loss": (sums[0] / sums[1]).tolist()}
            columns |= self.validation(lane.stack, with_bleu)
            for side, weight in _embeddings(lane.stack, copy=False).items():
                columns[f"σ, {side}"] = weight.flatten(1).std(dim=1).tolist()
                columns[f"update, {side}"] = (weight - lane.before[side]).flatten(1).norm(dim=1).tolist()
            for name, weight in lane.stack.weights.items():
                if name.endswith(".gain"):
                    columns[f"gain, {name.partition('.')[0]}"] = weight[:, 0].tolist()
            lane.trainer.sums.zero_()
            for i, place in enumerate(lane.places):
                if not self.outcome[place].stopped:
                    records[place] = {name: column[i] for name, column in columns.items()}
        return records

    def _keep(self, records: list[dict[str, float]]) -> None:
        for lane in self.lanes:
            for i, place in enumerate(lane.places):
                member, record = self.outcome[place], records[place]
                if member.stopped:
                    continue
                member.history.append(record)
                member.diverged |= not np.isfinite([record["train loss"], record["valid loss"]]).all()
                if _better(member, record):
                    member.best_epoch = self.epoch + 1
                    for name, weight in lane.stack.weights.items():
                        lane.best[name][i] = weight.detach()[i]
                waited = self.epoch + 1 - member.best_epoch
                member.stopped = 0 < self._trainings[place].patience <= waited

    def best(self) -> Stack:
        """Return all members with their best weights."""
        for lane in self.lanes:
            with torch.no_grad():
                for name, weight in lane.stack.weights.items():
                    weight.copy_(lane.best[name])
                    weight.requires_grad_(True)
        return joined([lane.stack for lane in self.lanes])

    def save(self, folder: Path, seconds: float) -> None:
        """Write a checkpoint, and record the seconds of training so far."""
        tensors: dict[str, Tensor] = {}
        for lane in self.lanes:
            for i, place in enumerate(lane.places):
                for name, weight in lane.stack.weights.items():
                    tensors[f"{place} weight {name}"] = weight.detach()[i]
                    tensors[f"{place} best {name}"] = lane.best[name][i]
                    state = lane.trainer.adam.state.get(weight, {})
                    for key in ("exp_avg", "exp_avg_sq"):
                        if key in state:
                            tensors[f"{place} {key} {name}"] = state[key][i]
                    if "step" in state:
                        tensors[f"{place} steps {name}"] = state["step"].expand(len(lane.places))[i : i + 1]
                tensors[f"{place} sums"] = lane.trainer.sums[:, i].clone()
                for side, weight in lane.before.items() if self.step else ():
                    tensors[f"{place} before {side}"] = weight[i]
        facts = {
            "identity": self._identity,
            "epoch": self.epoch,
            "step": self.step,
            "seconds": seconds,
            "members": [asdict(member) for member in self.outcome],
        }
        checkpoints.save(folder, tensors, facts)

    def restore(self, folder: Path) -> None:
        """Continue from a checkpoint, if there is one."""
        checkpoint = checkpoints.load(folder)
        if checkpoint is None:
            return
        tensors, facts = checkpoint
        if facts.get("identity") != self._identity:
            raise checkpoints.Unusable(f"{folder} has a checkpoint of other members or settings")
        self.epoch, self.step, self.seconds = facts["epoch"], facts["step"], facts["seconds"]
        self.outcome = [TrainedMember(**member) for member in facts["members"]]
        for lane in self.lanes:
            for i, place in enumerate(lane.places):
                lane.trainer.sums[:, i] = tensors[f"{place} sums"].to(self.device)
                for name, weight in lane.stack.weights.items():
                    with torch.no_grad():
                        weight[i] = tensors[f"{place} weight {name}"].to(self.device)
                    lane.best[name][i] = tensors[f"{place} best {name}"].to(self.device)
                    if f"{place} steps {name}" not in tensors:
                        continue
                    state = lane.trainer.adam.state[weight]
                    steps = tensors[f"{place} steps {name}"][0]
                    if not state:
                        state["step"] = lane.trainer.first_step(steps)
                        state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
                    if state["step"].dim():
                        state["step"][i] = steps
                    for key in ("exp_avg", "exp_avg_sq"):
                        state[key][i] = tensors[f"{place} {key} {name}"].to(self.device)
        if self.step:
            self._begin_epoch()
            for lane in self.lanes:
                for i, place in enumerate(lane.places):
                    for side, weight in lane.before.items():
                        weight[i] = tensors[f"{place} before {side}"].to(self.device)


def _lanes(members: int, device: torch.device) -> list[list[int]]:
    """Return the members of each stack: all share one, but on a CPU each has its own.

    A CPU is not faster with one large product than with many small ones, and separate stacks need no padding.
    """
    return [[place] for place in range(members)] if device.type == "cpu" else [list(range(members))]


def _arrays_of(member: Member) -> list[Sequence[npt.NDArray[Any] | None] | None]:
    """Return the arrays that a member starts from. Checkpoints of earlier versions know no rows of output layers."""
    return [member.matrices, member.frozen, member.found, *([] if member.output is None else [(member.output,)])]


def _checksum(array: npt.NDArray[Any] | None) -> int | None:
    return None if array is None else zlib.crc32(np.ascontiguousarray(array).data)


def _embeddings(stack: Stack, copy: bool = True) -> dict[str, Tensor]:
    embeddings = {n.partition(".")[0]: w.detach() for n, w in stack.weights.items() if n.endswith(".embedding")}
    return {side: weight.clone() for side, weight in embeddings.items()} if copy else embeddings


def _better(member: TrainedMember, record: dict[str, float]) -> bool:
    """Return whether the newest record is the member's best so far; one whose loss is NaN never is."""
    sound = [epoch for epoch in member.history if np.isfinite(epoch["valid loss"])]
    if not sound or sound[-1] is not record:
        return False
    if "accuracy" in record:
        return all(record["accuracy"] > earlier["accuracy"] for earlier in sound[:-1])
    return all(record["valid loss"] < earlier["valid loss"] for earlier in sound[:-1])
