"""Connect to a running Ray cluster by its address, or start one on this machine for the time of the work."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from embinit.errors import EmbinitError, require
from embinit.experiments.execution.processes import cores

#: The seconds that an address has to answer; Ray itself tries for minutes.
_ANSWER_SECONDS = 10.0
_AUTHENTICATION = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


def check(address: str | None, device: str = "auto") -> None:
    """Raise EmbinitError if Ray is not installed, nothing answers at the address, or the device is unknown."""
    if device not in ("auto", "cpu", "cuda"):
        raise EmbinitError(
            f"--device {device} does not fit the engine ray; give auto, cpu or cuda (Ray chooses the card)"
        )
    _set_up(address)
    require("ray", "ray", "the engine ray")
    if address is None or address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise EmbinitError(
            f"{address!r} is no address of a Ray cluster; give HOST:PORT, as `ray start` prints it, or auto"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EmbinitError(f"no Ray cluster answers at {address}: {reason}") from None


@contextmanager
def connected(address: str | None, cpus: int | None = None) -> Iterator[Any]:
    """Yield the module `ray`, connected. Without an address, the cluster has this machine's GPUs and `cpus` cores."""
    check(address)
    ray = require("ray", "ray", "the engine ray")
    own = {"num_cpus": cpus or cores(), "include_dashboard": False} if address is None else {}
    with _signals_kept():
        try:
            ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **own)
        except Exception as error:
            where = "start Ray here" if address is None else f"join the Ray cluster at {address}"
            raise EmbinitError(f"cannot {where}: {_reason(error)}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _set_up(address: str | None) -> None:
    """Set the environment variables that Ray reads when it starts, unless the user has set them."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")  # the number of tries at a silent address
    if address is None and not any(name in os.environ for name in _AUTHENTICATION):
        # Anybody who reaches a cluster without a token can run code on it. Ray's own token would stay in the user's home.
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


def _reason(error: BaseException) -> str:
    """Return in one line why Ray did not start or refused the connection."""
    if "AuthToken" in f"{error} {error.__cause__}":
        return "it needs a token; set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to the token of the head node"
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces when it starts."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)


def device_and_slots(ray: Any, device: str) -> tuple[str, int]:
    """Return the device of the cluster, `cuda` or `cpu`, and the number of groups that it can train at a time."""
    resources = ray.cluster_resources()
    cards, processors = int(resources.get("GPU", 0)), int(resources.get("CPU", 0))
    chosen = device if device != "auto" else "cuda" if cards else "cpu"
    slots = cards if chosen == "cuda" else processors
    if not slots:
        missing = "GPU" if chosen == "cuda" else "CPU"
        raise EmbinitError(f"no node of the Ray cluster has a {missing}; `ray status` lists its resources")
    return chosen, slots
