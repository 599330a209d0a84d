"""The engines that train runs: the processes of this machine, or a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embinit.experiments.execution.observer import ExecutionSummary, Watch

#: The kinds of device that torch trains on; a number may follow, as in cuda:1.
_DEVICES = ("auto", "cpu", "cuda", "mps", "xpu")


def check_engine(engine: str, address: str | None, workers: int | None, device: str) -> None:
    """Raise EmbinitError if the engine or the device is unknown, or the engine does not answer."""
    from embinit.errors import EmbinitError, closest

    if device.partition(":")[0] not in _DEVICES:
        raise EmbinitError(f"unknown device {device!r}{closest(device, _DEVICES)}")
    if engine not in ("local", "ray"):
        raise EmbinitError(f"unknown engine {engine!r}{closest(engine, ('local', 'ray'))}")
    if engine == "local":
        if address is not None:
            raise EmbinitError("`--address` needs `--engine ray`")
        return
    if address is not None and workers is not None:
        raise EmbinitError(
            "`--workers` sets the processes of this machine; for the nodes of a cluster, use `ray start --num-cpus`"
        )
    from embinit.experiments.execution.ray.cluster import check

    check(address, device)


def run_on_ray(
    jobs: Path,
    runs: Path,
    device: str,
    members: int | None,
    workers: int | None,
    address: str | None,
    curves: Watch | None,
    keep_weights: bool = False,
) -> ExecutionSummary:
    """Execute the jobs on a Ray cluster with a progress display; Ctrl-C keeps finished runs."""
    from embinit.cli.progress import Progress
    from embinit.experiments.execution.interruption import Interruption
    from embinit.experiments.execution.observer import Watches
    from embinit.experiments.execution.ray.engine import execute_on_ray

    with Progress() as progress:
        text = "stopping: finished runs are kept, runs in training are discarded"
        watch = progress if curves is None else Watches([progress, curves])
        with Interruption(lambda _: progress.message(text)) as stopping:
            return execute_on_ray(
                jobs, runs, address=address, device=device, members=members, workers=workers, watch=watch,
                stopping=stopping, keep_weights=keep_weights,
            )  # fmt: skip
