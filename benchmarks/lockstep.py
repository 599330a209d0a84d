"""Train and decode members in lockstep, as embinit does."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np

from benchmarks import clock
from benchmarks.cases import BARRIER, BETAS, DROPOUT, EPSILON, FEEDFORWARD, LAYERS, RATE, TEXT_WIDTH, Case, Timing
from embinit.models.architecture import Architecture
from embinit.models.model import Member, Stack, joined
from embinit.models.presets import preset
from embinit.prepared.folder import Packed, Prepared, open_prepared
from embinit.training.batches import Batches
from embinit.training.evaluation import translated, translations
from embinit.training.loop import Moment, _Run, train
from embinit.training.options import Training

_DECODING_BATCH = 128
#: Timed epochs of a whole training.
EPOCHS = 3


def precisions() -> tuple[str, ...]:
    """Return the precisions that embinit can train in."""
    return get_args(get_type_hints(Training)["precision"])


def training(case: Case, mixed: bool = False) -> Timing:
    """Return the time of a step: choosing and moving the batch, forward, backward and Adam, without validation."""
    clock.prepare_device(case)
    members, note = _Members(case, mixed), ""
    if case.cuda:
        start = time.perf_counter()
        members.capture()
        clock.synchronize(case)
        note = f"ready in {time.perf_counter() - start:.1f} s"
    seconds = clock.time_steps(members.step, case)
    return Timing(seconds, clock.peak_mb(case), members.parameters, note)


def mixed_training(case: Case) -> Timing:
    """Return the time of a step if the members differ in every setting that leaves shapes alone."""
    return training(case, mixed=True)


def whole_training(case: Case) -> Timing:
    """Return the time of a whole training per step, with validation, BLEU after each epoch, checkpoints and test.

    The first epoch is not timed, because it compiles kernels and captures steps. If the environment variable BARRIER is
    set, this process then waits until a second one has finished its first epoch too.
    """
    clock.prepare_device(case)
    prepared, start = open_prepared(Path(case.prepared)), 0.0
    # Rows without a token (generated captions have some) cannot be decoded.
    case = replace(case, vocabularies=tuple(len(prepared.vocabularies[side]) for side in prepared.sides))

    def progress(moment: Moment) -> None:
        nonlocal start
        if moment.epoch == 1 and moment.records is not None:
            clock.synchronize(case)
            if BARRIER in os.environ:
                _wait_for_other_process(Path(os.environ[BARRIER]))
            start = time.perf_counter()

    with tempfile.TemporaryDirectory() as folder:
        outcome = train(
            prepared, architecture(case, prepared), initial_members(case), training_settings(case, 1 + EPOCHS),
            case.device, progress, Path(folder), 20.0,
        )  # fmt: skip
        translations(outcome.stack, prepared, "test", case.device)
    clock.synchronize(case)
    seconds = time.perf_counter() - start
    steps = EPOCHS * -(-int(prepared.manifest["splits"]["train"]["rows"]) // case.batch)
    parameters = sum(weight.numel() for weight in outcome.stack.parameters()) // case.members
    return Timing(seconds / steps, clock.peak_mb(case), parameters, f"{EPOCHS} epochs in {seconds:.1f} s")


def _wait_for_other_process(folder: Path) -> None:
    """Wait until two processes have reached this line."""
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < 2:
        time.sleep(0.01)


def text_training(case: Case) -> Timing:
    """Return the time of a step of language models, trained as `embinit run` trains the preset `gpt2`."""
    clock.prepare_device(case)
    members, note = _TextMembers(case), ""
    if case.cuda:
        start = time.perf_counter()
        members.capture()
        clock.synchronize(case)
        note = f"ready in {time.perf_counter() - start:.1f} s"
    return Timing(clock.time_steps(members.step, case), clock.peak_mb(case), members.parameters, note)


def decoding(case: Case) -> Timing:
    """Return the time of greedy decoding, after the members have trained for `case.steps`."""
    clock.prepare_device(case)
    members = _Members(case)
    for number in range(case.steps):
        members.step(number)
    whole, stack = open_prepared(Path(case.prepared)), members.stack
    prepared = _FirstSentences(whole.path, whole.manifest, case.sentences)
    for _ in range(2 if case.cuda else 1):  # kernels are compiled in the first round
        clock.synchronize(case)
        start = time.perf_counter()
        sentences = translated(stack, Batches(prepared, "test", _DECODING_BATCH, case.device))
        seconds = time.perf_counter() - start
    length = np.mean([len(sentence) for member in sentences for sentence in member])
    return Timing(seconds, clock.peak_mb(case), 0, f"{len(sentences[0]):,} sentences, {length:.1f} tokens each")


def kernel_times(case: Case) -> dict[str, tuple[float, float]]:
    """Return kernel -> microseconds and launches in a step, as means over the case's steps."""
    from torch.profiler import ProfilerActivity, profile

    clock.prepare_device(case)
    members = _Members(case)
    if case.cuda:
        members.capture()
    for number in range(case.warmup_steps):
        members.step(number)
    clock.synchronize(case)
    with profile(activities=[ProfilerActivity.CUDA if case.cuda else ProfilerActivity.CPU]) as profiler:
        for number in range(case.steps):
            members.step(number)
        clock.synchronize(case)
    times = {}
    for event in profiler.key_averages():
        spent = event.self_device_time_total if case.cuda else event.self_cpu_time_total
        times[event.key] = (spent / case.steps, event.count / case.steps)
    return times


def architecture(case: Case, prepared: Prepared) -> Architecture:
    """Return the architecture of a case."""
    classes = len(prepared.manifest.get("labels", ()))
    return Architecture(
        "classification" if classes else "translation", case.dim, case.vocabularies, case.heads, LAYERS,
        FEEDFORWARD, DROPOUT, classes=classes or Architecture.classes,
    )  # fmt: skip


def training_settings(case: Case, epochs: int) -> Training:
    """Return the training settings of a case."""
    return Training(epochs, case.batch, RATE, BETAS, EPSILON, precision=case.precision)  # type: ignore[arg-type]


def initial_members(case: Case) -> list[Member]:
    """Return the members of a case. As in an experiment, each seed has four initializations."""
    rng = np.random.default_rng(0)
    matrices = tuple((0.02 * rng.standard_normal((rows, case.dim))).astype(np.float32) for rows in case.vocabularies)
    return [Member(i // 4, matrices) for i in range(case.members)]


def sweep_members(members: list[Member], options: Training) -> tuple[list[Member], list[Training]]:
    """Return members and settings of a sweep over six rates that also varies every other setting of a member."""
    rates = [options.rate * factor for factor in (0.25, 0.5, 1, 2, 4, 8)]
    swept = [
        replace(
            options, rate=rates[i % 6], warmup=100 * (i % 3), weight_decay=0.01 * (i % 2), smoothing=0.1 * (i % 2),
            frozen_epochs=i % 4 == 3, embedding_rate=1.0 if i % 5 else 0.1,
        )
        for i in range(len(members))
    ]  # fmt: skip
    return [replace(member, dropout=(0.1, 0.2, 0.0)[i % 3]) for i, member in enumerate(members)], swept


class _Members:
    """Members that train as in `train`, but one step at a time and without validation."""

    def __init__(self, case: Case, mixed: bool = False) -> None:
        prepared, members = open_prepared(Path(case.prepared)), initial_members(case)
        options = training_settings(case, 1000)
        own = sweep_members(members, options) if mixed else (members, options)
        self._begin(case, prepared, architecture(case, prepared), *own)

    def _begin(
        self, case: Case, prepared: Prepared, architecture: Architecture, members: list[Member],
        options: Training | list[Training],
    ) -> None:  # fmt: skip
        self._run = _Run(prepared, architecture, members, options, case.device)
        self._run._begin_epoch()

    def step(self, number: int) -> None:
        """Train all members for a step. The first step of an epoch shuffles the examples."""
        run = self._run
        epoch, place = divmod(number, len(run.batches))
        if epoch != run.epoch:
            run.epoch = epoch
            run._begin_epoch()
        for lane in run.lanes:
            lane.trainer.step(lane.rows[:, place], lane.rooms[place], number, epoch)

    def capture(self) -> None:
        """Train on batches of every size in two epochs, so that every step is captured before the timed ones."""
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
        """Return all members in their current state."""
        return joined([lane.stack for lane in self._run.lanes])

    @property
    def parameters(self) -> int:
        """Return the number of parameters of a member."""
        stack = self._run.lanes[0].stack
        return sum(weight.numel() for weight in stack.parameters()) // stack.members


class _TextMembers(_Members):
    """Language models in training."""

    def __init__(self, case: Case) -> None:
        model, training = preset("gpt2").model, preset("gpt2").training
        gpt2 = Architecture(
            task="language_model", dim=case.dim, vocabularies=case.vocabularies, heads=case.heads, layers=case.layers,
            feedforward=TEXT_WIDTH * case.dim, length=case.length, **{**model, "dropout": 0.0},
        )  # fmt: skip
        own = {"epochs": 1000, "batch": case.batch, "precision": case.precision, "protected": case.protected}
        options = Training(**{**training, **own})
        self._begin(case, open_prepared(Path(case.prepared)), gpt2, initial_members(case), options)


@dataclass(frozen=True)
class _FirstSentences(Prepared):
    """A prepared task that shows only the first sentences of each split."""

    most: int

    def packed(self, split: str, side: str) -> Packed:
        whole = super().packed(split, side)
        offsets = whole.offsets[: self.most + 1]
        return Packed(whole.ids[: offsets[-1]], offsets)
