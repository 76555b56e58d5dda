"""The local cloud as processes: storage, Service Bus, Azure, GitHub, and the functions.

``with LocalCloud(state) as cloud:`` runs one until the block ends. Nothing outlives it: each process stops
when its supervisor has ended, even by ``kill -9``. Several clouds run side by side in different folders.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from localcloud.azure.world.access import directory
from localcloud.azure.world.catalog import TENANT
from localcloud.runtime.child_processes import Child, ProcessPart, Spawn
from localcloud.runtime.options import DEVOPS, USUAL_PORTS, Options, Urls, child_environment, compose_settings
from localcloud.runtime.parts.part import ready_file, request_log
from localcloud.runtime.port_reservations import PortReservations
from localcloud.runtime.state_folder import StateFolder
from localcloud.runtime.tools import azurite_command

_START_SECONDS = 60.0
_STOP_FUNCTIONS_SECONDS = 2.0
"""Enough for a step; the rest of the work ends with the cloud."""
_STOP_SECONDS = 1.0


class LocalCloud:
    """One cloud; ``start`` and ``close``, or a context manager.

    Raises PartFailed when a part does not start, StateFolderError when the folder is not usable.
    """

    def __init__(
        self, state: Path, options: Options | None = None, *, spawn: Spawn = subprocess.Popen
    ) -> None:
        self.state, self.options, self._spawn = state.resolve(), options or Options(), spawn
        self._stack = ExitStack()
        self._children: dict[str, Child] = {}
        self.ports: dict[str, int] = {}
        self.settings: dict[str, str] = {}
        """The settings of the functions; all secrets are of this cloud only."""

    @property
    def urls(self) -> Urls:
        """The URLs of the services."""
        return Urls.of(self.ports)

    @property
    def remote(self) -> str:
        """The git remote of the fleet's repository; clone and push need no credentials."""
        if self.options.git_host == DEVOPS:
            return self.settings["GIT_URL"]
        return f"{self.urls.github}/{self.settings['GITHUB_REPOSITORY']}.git"

    def start(self) -> None:
        """Start every part and return when all of them answer."""
        try:
            self._prepare()
            servers = [self._start(part) for part in self._servers()]
            for child in servers:
                child.wait_ready(_START_SECONDS)
            if self.options.functions:
                self.start_functions()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop every process, the functions first so that running steps can end."""
        for functions in self._take_hosts():
            functions.stop(_STOP_FUNCTIONS_SECONDS)
        for child in self._children.values():
            child.ask_to_stop()
        for child in self._children.values():
            child.stop(_STOP_SECONDS)
        self._children.clear()
        self._stack.close()

    def check(self) -> None:
        """Raise PartFailed when a process has ended by itself."""
        for child in self._children.values():
            child.check()

    @property
    def _hosts(self) -> Mapping[str, str]:
        """The app that each host of functions runs, "" for all functions; the first host has the API."""
        apps = [app for app in directory.APPS if app in self.options.roles]
        return {"functions": apps[0] if apps else "", **{f"functions-{app}": app for app in apps[1:]}}

    def start_functions(self) -> None:
        """Start the functions, again after ``kill_functions``, and wait until they answer."""
        for host, app in self._hosts.items():
            self._start_host(host, app)

    def _start_host(self, host: str, app: str, code: Path | None = None) -> None:
        settings, port = self.state / f"local.settings{app and '-' + app}.json", self.ports[host]
        if app:
            own = {"ROADSTEAD_APP": app, "AZURE_CLIENT_ID": directory.APPS[app].id}
            own |= {f"{name.upper()}_PRINCIPAL": known.id for name, known in directory.APPS.items()}
            _write(settings, {"IsEncrypted": False, "Values": self.settings | own})
        command = [sys.executable, *(["-P"] if code else []), "-m", "localcloud.functions.host"]
        command += ["--app", str(code or self.options.app)]
        command += ["--settings", str(settings), "--port", str(port), "--stop-with-parent"]
        command += ["--sign-in", f"{self.urls.identity}/{TENANT}", "--audience", directory.API]
        command += ["--worker", self.options.worker] if self.options.worker else []
        self._start(ProcessPart(host, command, lambda: _answers(port)), code).wait_ready(_START_SECONDS)

    def publish(self, app: str, code: Path, meanwhile: Callable[[], object]) -> None:
        """Give an app of ``roles`` the code in a folder, with its ``localcloud``, as a rolling update does.

        Hosts of both versions take messages during ``meanwhile``; then the former one ends what it does.
        """
        host = next(name for name, of in self._hosts.items() if of == app)
        following = f"{host}-next"
        if following not in self.ports:
            self.ports[following] = self._reservations.reserve(None)
        self._start_host(following, app, code)
        meanwhile()
        self._children.pop(host).stop(_START_SECONDS)
        self._start_host(host, app, code)  # at the address of the app
        self._children.pop(following).stop(_START_SECONDS)

    def kill_functions(self) -> None:
        """End the functions that run as ``kill -9`` does, in the middle of their work."""
        for functions in self._take_hosts():
            functions.kill()

    def _take_hosts(self) -> list[Child]:
        """Return the hosts that run, which are no longer parts of this cloud."""
        return [self._children.pop(name) for name in [*self._children] if name.startswith("functions")]

    def process(self, part: str) -> int:
        """Return the id of the process of a part that runs."""
        return self._children[part].pid

    def requests(self, service: str) -> list[dict[str, Any]]:
        """Return the requests to "arm", "kubernetes" or "github" so far: at, method, path, status ..."""
        log = request_log(self.state, service)
        if not log.is_file():
            return []
        # The last line may be half written.
        return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def __enter__(self) -> LocalCloud:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> None:
        """Lock the folder, reserve the ports, and write the configuration of the processes."""
        folder = StateFolder(self.state)
        self._stack.callback(folder.close)
        self.state.chmod(0o700)
        reservations = self._reservations = PortReservations()
        self._stack.callback(reservations.close)
        for name, usual in USUAL_PORTS.items():
            self.ports[name] = reservations.reserve(usual if self.options.usual_ports else None)
        for host in self._hosts.keys() - self.ports.keys():
            self.ports[host] = reservations.reserve(None)
        self.settings = compose_settings(self.state, self.ports, self.options)
        (self.state / "logs").mkdir(mode=0o700)
        names = ("create_seconds", "lock_seconds", "subscriptions", "roles", "existing")
        options = {name: getattr(self.options, name) for name in names}
        cloud = {"ports": self.ports, "urls": vars(self.urls), "remote": self.remote, "options": options}
        _write(self.state / "cloud.json", {"process": os.getpid(), **cloud})
        _write(self.state / "local.settings.json", {"IsEncrypted": False, "Values": self.settings})

    def _servers(self) -> list[ProcessPart]:
        blob, queue, table = (self.ports[name] for name in ("blob", "queue", "table"))
        command = azurite_command(blob=blob, queue=queue, table=table)
        return [
            ProcessPart("storage", command, lambda: all(map(_listens, (blob, queue, table)))),
            *(self._own_part(name) for name in ("servicebus", "azure", "github")),
        ]

    def _own_part(self, name: str) -> ProcessPart:
        host = self.options.git_host
        usual = host.replace("-", "_") if name == "github" and host != "git" else name
        module = self.options.modules.get(name, f"localcloud.runtime.parts.{usual}_part")
        command = [sys.executable, "-m", module, str(self.state)]
        return ProcessPart(name, command, ready_file(self.state, name).is_file)

    def _start(self, part: ProcessPart, code: Path | None = None) -> Child:
        log = self.state / "logs" / f"{part.name}.log"
        environment = child_environment(os.environ, self.settings)
        if code:
            environment["PYTHONPATH"] = str(code)
        child = Child(part, log, environment, subprocess.Popen if code else self._spawn)
        self._children[part.name] = child
        return child


def _write(path: Path, content: object) -> None:
    path.touch(mode=0o600)  # it may hold secrets
    path.write_text(json.dumps(content, indent=2) + "\n")


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _answers(port: int) -> bool:
    """Return whether the host of the functions answers."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=1)) as connection:
        try:
            connection.request("GET", "/admin/host/status")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
