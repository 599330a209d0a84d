"""The tiny tasks, prepared once; one thread, which is the fastest for them; members apart or side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from embinit.prepared.folder import Prepared
from embinit.training import loop

from .made import copying_task, sorting_task


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def copying(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return copying_task(tmp_path_factory.mktemp("copying"))


@pytest.fixture(scope="session")
def sorting(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return sorting_task(tmp_path_factory.mktemp("sorting"))


@pytest.fixture
def side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """All members share one stack, as on CUDA."""
    monkeypatch.setattr(loop, "_lanes", lambda members, _: [list(range(members))])


def clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let so many seconds pass whenever the loop asks what time it is, and never any other."""
    ticks = itertools.count()
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: seconds * next(ticks)))


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """So slow is each step that it gives a moment."""
    clock(monkeypatch, 1.0)


@pytest.fixture
def fast_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """So fast is each epoch that it gives only one moment, at its end."""
    clock(monkeypatch, 1e-6)
