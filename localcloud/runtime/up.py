"""``make up``: runs a local cloud until Ctrl-C, and prints the next commands and what is notified."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from localcloud.azure.world.catalog import SUBSCRIPTION
from localcloud.runtime.child_processes import PartFailed
from localcloud.runtime.guide import guide
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import ROOT, Options
from localcloud.runtime.parts.part import shown_notifications
from localcloud.runtime.state_folder import StateFolderError
from localcloud.runtime.tools import ToolError

_WATCH_SECONDS = 0.2


class _Stopped(Exception):
    """Ctrl-C or SIGTERM arrived while the cloud was starting."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a cloud; return 0 when it was stopped, 1 when it could not start or a part ended."""
    given = parser().parse_args(arguments)
    options = Options(
        create_seconds=given.create_seconds,
        lock_seconds=given.lock_seconds,
        app=given.app,
        functions=not given.without_functions,
        subscriptions=tuple(given.subscription or (SUBSCRIPTION,)),
        usual_ports=True,
        existing=tuple(given.existing or ()),
    )
    cloud = LocalCloud(given.state, options)
    stop = _Stop()
    try:
        if not given.quiet:
            print("Starting the local cloud: about ten seconds ...", flush=True)
        cloud.start()
        if not given.quiet:
            print(guide(cloud, Path.cwd()), flush=True)
        stop.started.set()
        seen = 0
        while not stop.asked.wait(_WATCH_SECONDS):
            cloud.check()
            seen = seen if given.quiet else show_notifications(shown_notifications(cloud.state), seen)
    except _Stopped:
        pass
    except (PartFailed, StateFolderError, ToolError, OSError) as error:
        verb = "stops" if stop.started.is_set() else "cannot start"
        print(f"The local cloud {verb}: {error}", file=sys.stderr)
        return 1
    finally:
        stop.started.set()
        cloud.close()
    if not given.quiet:
        print("The local cloud has stopped.")
    return 0


def show_notifications(path: Path, seen: int) -> int:
    """Print the notifications after the first ``seen`` bytes; return how many bytes were shown."""
    new = path.read_bytes()[seen:] if path.is_file() else b""
    whole = new[: new.rfind(b"\n\n") + 2] if b"\n\n" in new else b""
    for message in filter(None, whole.decode().split("\n\n")):
        lines = ["".join(filter(str.isprintable, line)) for line in message.splitlines()]
        print("\n".join(["", "Notification in Teams:", *(f"  {line}" for line in lines)]), flush=True)
    return seen + len(whole)


class _Stop:
    """Turns signals into an orderly stop, even while the cloud is starting."""

    def __init__(self) -> None:
        self.asked, self.started = threading.Event(), threading.Event()
        signal.signal(signal.SIGINT, self._on_signal)
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked.is_set():
            return  # already stopping; a second Ctrl-C must not interrupt that
        self.asked.set()
        if not self.started.is_set():
            raise _Stopped


def parser() -> argparse.ArgumentParser:
    """Return what the command line takes."""
    found = argparse.ArgumentParser(prog="python -m localcloud up", description=__doc__)
    found.add_argument(
        "--state", type=Path, default=Path(".localcloud"), help="state folder, emptied at the start"
    )
    found.add_argument("--create-seconds", type=float, default=4.0, help="how long Azure creates a cluster")
    found.add_argument("--lock-seconds", type=float, default=10.0, help="Service Bus session lock")
    found.add_argument(
        "--subscription",
        action="append",
        help=f"the id of an Azure subscription that exists, as often as needed; without it {SUBSCRIPTION}",
    )
    found.add_argument(
        "--existing",
        action="append",
        metavar="NAME",
        help="a cluster outside Azure; its kubeconfig is the secret NAME-kubeconfig of the vault platform",
    )
    found.add_argument("--app", type=Path, default=ROOT, help="folder of function_app.py")
    found.add_argument("--without-functions", action="store_true", help="start the services only")
    found.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return found
