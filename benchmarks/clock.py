"""Time and memory of training steps, and the peak speed of the machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import torch

from benchmarks.cases import Case, Timing
from benchmarks.tasks import peak_bytes


def prepare_device(case: Case) -> None:
    """Set the number of threads and the precision of float32 products, and reset the memory statistics."""
    torch.set_num_threads(case.threads)
    if case.cuda:
        torch.backends.cuda.matmul.allow_tf32 = case.precision == "tf32"
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def synchronize(case: Case) -> None:
    """Wait until the device has finished its work."""
    if case.cuda:
        torch.cuda.synchronize()


def peak_mb(case: Case) -> float:
    """Return the peak memory in MB: allocated on the card, or of this process with its imports."""
    return (torch.cuda.max_memory_allocated() if case.cuda else peak_bytes()) / 1e6


def time_steps(step: Callable[[int], object], case: Case) -> float:
    """Return the seconds per step, without the warm-up. `step` takes the number of a step, from 0."""
    for number in range(case.warmup_steps):
        step(number)
    synchronize(case)
    start = time.perf_counter()
    for number in range(case.warmup_steps, case.warmup_steps + case.steps):
        step(number)
    synchronize(case)
    return (time.perf_counter() - start) / case.steps


class StepTimer:
    """Timer for the training loop of another program, which calls `stamp` once per step."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._done = 0
        self._start = 0.0
        self.seconds = float("nan")
        self.memory = float("nan")

    @property
    def steps(self) -> int:
        """Return the number of steps that the loop must run."""
        return self._case.warmup_steps + self._case.steps

    def stamp(self) -> None:
        """Count a step; store the time and memory after the last one."""
        self._done += 1
        if self._done in (self._case.warmup_steps, self.steps):
            synchronize(self._case)
            now = time.perf_counter()
            self.seconds = (now - self._start) / self._case.steps
            self._start = now
        if self._done == self.steps:
            self.memory = peak_mb(self._case)


def matrix_product(case: Case) -> Timing:
    """Return the seconds of one large square matrix product in the case's precision, the best of 13."""
    prepare_device(case)
    dtype = torch.bfloat16 if case.precision == "bfloat16" else torch.float32
    size = product_size(case)
    a, b = (torch.randn(size, size, device=case.device).to(dtype) for _ in range(2))
    best = float("inf")
    for _ in range(13):
        synchronize(case)
        start = time.perf_counter()
        a @ b
        synchronize(case)
        best = min(best, time.perf_counter() - start)
    return Timing(best, peak_mb(case), 0)


def product_size(case: Case) -> int:
    """Return the number of rows and of columns in `matrix_product`."""
    return 8192 if case.cuda else 2048
