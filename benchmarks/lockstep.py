"""Members in lockstep, as embinit trains and decodes them; the only file here that knows the training room."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np

from benchmarks import clock
from benchmarks.cases import BARRIER, BETAS, DROPOUT, EPSILON, FEEDFORWARD, LAYERS, RATE, TEXT_WIDTH, Case, Timed
from embinit.models.architecture import Architecture
from embinit.models.model import Member, Stack, joined
from embinit.models.presets import preset
from embinit.prepared.folder import Packed, Prepared, open_prepared
from embinit.training.batches import Batches
from embinit.training.evaluation import translated, translations
from embinit.training.loop import Moment, _Run, train
from embinit.training.options import Training

_DECODING_BATCH = 128
#: Epochs of a whole training that count.
EPOCHS = 3


def precisions() -> tuple[str, ...]:
    """Return the precisions that training knows."""
    return get_args(get_type_hints(Training)["precision"])


def training(case: Case, mixed: bool = False) -> Timed:
    """Return the time of a step: choosing and moving the batch, forward, backward, Adam; no validation."""
    clock.ready(case)
    members, note = _Members(case, mixed), ""
    if case.cuda:
        start = time.perf_counter()
        members.capture()
        clock.wait(case)
        note = f"ready in {time.perf_counter() - start:.1f} s"
    seconds = clock.timed(members.step, case)
    return Timed(seconds, clock.memory(case), members.parameters, note)


def mixed_training(case: Case) -> Timed:
    """Return the time of a step of members that differ in every setting that changes no shape."""
    return training(case, mixed=True)


def whole_training(case: Case) -> Timed:
    """Return the time of a training in seconds a step: with validation, BLEU after each epoch, checkpoints and test.

    The first epoch, in which kernels are compiled and steps captured, does not count. If BARRIER is set in the environment,
    it waits there after that epoch until another process does the same.
    """
    clock.ready(case)
    prepared, begin = open_prepared(Path(case.prepared)), 0.0
    # Rows that no token has (generated captions) cannot be decoded.
    case = replace(case, vocabularies=tuple(len(prepared.vocabularies[side]) for side in prepared.sides))

    def progress(moment: Moment) -> None:
        nonlocal begin
        if moment.epoch == 1 and moment.records is not None:
            clock.wait(case)
            if BARRIER in os.environ:
                _meet(Path(os.environ[BARRIER]))
            begin = time.perf_counter()

    with tempfile.TemporaryDirectory() as folder:
        outcome = train(
            prepared, model(case, prepared), started(case), settings(case, 1 + EPOCHS), case.device, progress,
            Path(folder), 20.0,
        )  # fmt: skip
        translations(outcome.stack, prepared, "test", case.device)
    clock.wait(case)
    seconds = time.perf_counter() - begin
    steps = EPOCHS * -(-int(prepared.manifest["splits"]["train"]["rows"]) // case.batch)
    parameters = sum(weight.numel() for weight in outcome.stack.parameters()) // case.members
    return Timed(seconds / steps, clock.memory(case), parameters, f"{EPOCHS} epochs in {seconds:.1f} s")


def _meet(folder: Path) -> None:
    """Wait until two processes are here."""
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < 2:
        time.sleep(0.01)


def text_training(case: Case) -> Timed:
    """Return the time of a step of language models: GPT-2's preset, as `embinit run` trains it."""
    clock.ready(case)
    members, note = _TextMembers(case), ""
    if case.cuda:
        start = time.perf_counter()
        members.capture()
        clock.wait(case)
        note = f"ready in {time.perf_counter() - start:.1f} s"
    return Timed(clock.timed(members.step, case), clock.memory(case), members.parameters, note)


def decoding(case: Case) -> Timed:
    """Return the time of greedy decoding by members that have been trained for the case's steps."""
    clock.ready(case)
    members = _Members(case)
    for number in range(case.steps):
        members.step(number)
    whole, stack = open_prepared(Path(case.prepared)), members.stack
    prepared = _First(whole.path, whole.manifest, case.sentences)
    for _ in range(2 if case.cuda else 1):  # kernels are compiled in the first round
        clock.wait(case)
        start = time.perf_counter()
        found = translated(stack, Batches(prepared, "test", _DECODING_BATCH, case.device))
        seconds = time.perf_counter() - start
    length = np.mean([len(sentence) for member in found for sentence in member])
    return Timed(seconds, clock.memory(case), 0, f"{len(found[0]):,} sentences, {length:.1f} tokens each")


def kernel_times(case: Case) -> dict[str, tuple[float, float]]:
    """Return what the device does in a step: kernel -> microseconds and launches, the mean over the case's steps."""
    from torch.profiler import ProfilerActivity, profile

    clock.ready(case)
    members = _Members(case)
    if case.cuda:
        members.capture()
    for number in range(case.warm):
        members.step(number)
    clock.wait(case)
    with profile(activities=[ProfilerActivity.CUDA if case.cuda else ProfilerActivity.CPU]) as seen:
        for number in range(case.steps):
            members.step(number)
        clock.wait(case)
    found = {}
    for event in seen.key_averages():
        spent = event.self_device_time_total if case.cuda else event.self_cpu_time_total
        found[event.key] = (spent / case.steps, event.count / case.steps)
    return found


def model(case: Case, prepared: Prepared) -> Architecture:
    """Return the model of a case."""
    classes = len(prepared.manifest.get("labels", ()))
    return Architecture(
        "classification" if classes else "translation", case.dim, case.vocabularies, case.heads, LAYERS,
        FEEDFORWARD, DROPOUT, classes=classes or Architecture.classes,
    )  # fmt: skip


def settings(case: Case, epochs: int) -> Training:
    """Return the settings of a case."""
    return Training(epochs, case.batch, RATE, BETAS, EPSILON, precision=case.precision)  # type: ignore[arg-type]


def started(case: Case) -> list[Member]:
    """Return the members of a case as an experiment has them: four initializations of each seed."""
    rng = np.random.default_rng(0)
    matrices = tuple((0.02 * rng.standard_normal((rows, case.dim))).astype(np.float32) for rows in case.vocabularies)
    return [Member(i // 4, matrices) for i in range(case.members)]


def swept(members: list[Member], options: Training) -> tuple[list[Member], list[Training]]:
    """Return members and settings as a sweep over six rates has them, with every other setting that a member may own."""
    rates = [options.rate * factor for factor in (0.25, 0.5, 1, 2, 4, 8)]
    each = [
        replace(
            options, rate=rates[i % 6], warmup=100 * (i % 3), weight_decay=0.01 * (i % 2), smoothing=0.1 * (i % 2),
            frozen_epochs=i % 4 == 3, embedding_rate=1.0 if i % 5 else 0.1,
        )
        for i in range(len(members))
    ]  # fmt: skip
    return [replace(one, dropout=(0.1, 0.2, 0.0)[i % 3]) for i, one in enumerate(members)], each


class _Members:
    """Members in training as `train` has them, one step at a time and without validation."""

    def __init__(self, case: Case, mixed: bool = False) -> None:
        prepared, members, options = open_prepared(Path(case.prepared)), started(case), settings(case, 1000)
        self._begin(case, prepared, model(case, prepared), *(swept(members, options) if mixed else (members, options)))

    def _begin(
        self, case: Case, prepared: Prepared, architecture: Architecture, members: list[Member],
        options: Training | list[Training],
    ) -> None:  # fmt: skip
        self._run = _Run(prepared, architecture, members, options, case.device)
        self._run._begin_epoch()

    def step(self, number: int) -> None:
        """Train all members for a step; an epoch's orders are made when it begins."""
        run = self._run
        epoch, place = divmod(number, len(run.batches))
        if epoch != run.epoch:
            run.epoch = epoch
            run._begin_epoch()
        for lane in run.lanes:
            lane.trainer.step(lane.rows[:, place], lane.rooms[place], number, epoch)

    def capture(self) -> None:
        """Train for some steps of every size that a batch of two epochs has, so that no later one is the first."""
        for epoch in (1, 0):
            self._run.epoch = epoch
            self._run._begin_epoch()
            for lane in self._run.lanes:
                for rooms in set(lane.rooms):
                    place = lane.rooms.index(rooms)
                    for _ in range(3):
                        lane.trainer.step(lane.rows[:, place], rooms, place, epoch)

    @property
    def stack(self) -> Stack:
        """Return all members as they are now."""
        return joined([lane.stack for lane in self._run.lanes])

    @property
    def parameters(self) -> int:
        """Return how many numbers a member learns."""
        stack = self._run.lanes[0].stack
        return sum(weight.numel() for weight in stack.parameters()) // stack.members


class _TextMembers(_Members):
    """The same of language models."""

    def __init__(self, case: Case) -> None:
        model, training = preset("gpt2").model, preset("gpt2").training
        architecture = Architecture(
            task="language_model", dim=case.dim, vocabularies=case.vocabularies, heads=case.heads, layers=case.layers,
            feedforward=TEXT_WIDTH * case.dim, length=case.length, **{**model, "dropout": 0.0},
        )  # fmt: skip
        own = {"epochs": 1000, "batch": case.batch, "precision": case.precision, "protected": case.protected}
        options = Training(**{**training, **own})
        self._begin(case, open_prepared(Path(case.prepared)), architecture, started(case), options)


@dataclass(frozen=True)
class _First(Prepared):
    """The first sentences of each split."""

    most: int

    def packed(self, split: str, side: str) -> Packed:
        whole = super().packed(split, side)
        offsets = whole.offsets[: self.most + 1]
        return Packed(whole.ids[: offsets[-1]], offsets)
