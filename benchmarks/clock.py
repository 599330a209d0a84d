"""Time, memory, and what the machine can do at most."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import torch

from benchmarks.cases import Case, Timed
from benchmarks.tasks import peak


def ready(case: Case) -> None:
    """Set the threads and the precision of float32 products, and begin counting memory anew."""
    torch.set_num_threads(case.threads)
    if case.cuda:
        torch.backends.cuda.matmul.allow_tf32 = case.precision == "tf32"
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def wait(case: Case) -> None:
    """Return when the device has done what it was asked for."""
    if case.cuda:
        torch.cuda.synchronize()


def memory(case: Case) -> float:
    """Return the peak in MB: of the card's allocated memory, or of this process with all that it imported."""
    return (torch.cuda.max_memory_allocated() if case.cuda else peak()) / 1e6


def timed(step: Callable[[int], object], case: Case) -> float:
    """Return seconds a step, numbered from 0; those that warm up do not count."""
    for number in range(case.warm):
        step(number)
    wait(case)
    start = time.perf_counter()
    for number in range(case.warm, case.warm + case.steps):
        step(number)
    wait(case)
    return (time.perf_counter() - start) / case.steps


class Stamps:
    """The time between two steps of a loop that is not ours: `stamp` is called once at the end of each step."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._done = 0
        self._start = 0.0
        self.seconds = float("nan")
        self.memory = float("nan")

    @property
    def steps(self) -> int:
        """Return how many steps the loop has to do."""
        return self._case.warm + self._case.steps

    def stamp(self) -> None:
        self._done += 1
        if self._done in (self._case.warm, self.steps):
            wait(self._case)
            now = time.perf_counter()
            self.seconds = (now - self._start) / self._case.steps
            self._start = now
        if self._done == self.steps:
            self.memory = memory(self._case)


def matrix_product(case: Case) -> Timed:
    """Return the seconds of one large square product in the case's precision, the best of ten."""
    ready(case)
    dtype = torch.bfloat16 if case.precision == "bfloat16" else torch.float32
    size = product_size(case)
    a, b = (torch.randn(size, size, device=case.device).to(dtype) for _ in range(2))
    best = float("inf")
    for _ in range(13):
        wait(case)
        start = time.perf_counter()
        a @ b
        wait(case)
        best = min(best, time.perf_counter() - start)
    return Timed(best, memory(case), 0)


def product_size(case: Case) -> int:
    """Return the rows and columns of the product that shows what the machine can do."""
    return 8192 if case.cuda else 2048
