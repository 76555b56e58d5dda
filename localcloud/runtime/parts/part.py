"""What every process of the local cloud does: read its configuration, serve, and stop on a signal.

It stops on SIGTERM, and when its supervisor has ended. Its state is in memory, except the repositories. Only
the current user can read its files: kubeconfigs and logs are as private as those of a real fleet.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from localcloud.common.stop_with_parent import stop_with_parent


@dataclass(frozen=True)
class Config:
    """The configuration of a process; ``options`` are those of ``Options`` that a part needs."""

    state: Path
    ports: Mapping[str, int]
    urls: Mapping[str, str]
    options: Mapping[str, Any]
    settings: Mapping[str, str]

    @classmethod
    def read(cls, state: Path) -> Config:
        """Read what the supervisor wrote into the state folder."""
        cloud: dict[str, Any] = json.loads((state / "cloud.json").read_text())
        settings = json.loads((state / "local.settings.json").read_text())["Values"]
        return cls(state, cloud["ports"], cloud["urls"], cloud["options"], settings)


def request_log(state: Path, service: str) -> Path:
    """Return the file with the requests to a service, as JSON lines."""
    return state / "logs" / f"requests-{service}.jsonl"


def repositories(state: Path) -> Path:
    """Return the folder of the bare repositories, as "owner/name.git"."""
    return state / "repositories"


def kubeconfigs(state: Path) -> Path:
    """Return the folder of the clusters' kubeconfigs, as "NAME.yaml"."""
    return state / "kubeconfigs"


def shown_notifications(state: Path) -> Path:
    """Return the file with the notifications that Teams has got, as text."""
    return state / "notifications.txt"


def ready_file(state: Path, part: str) -> Path:
    """Return the file that a process writes when it is ready."""
    return state / f".{part}-is-ready"


def run(part: str, serve: Callable[[Config], AbstractContextManager[None]]) -> None:
    """Serve the state folder named on the command line until a signal comes."""
    os.umask(0o077)
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    stop_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s %(name)s  %(message)s")
    config = Config.read(Path(sys.argv[1]))
    with serve(config):
        ready_file(config.state, part).touch()
        stop.wait()
