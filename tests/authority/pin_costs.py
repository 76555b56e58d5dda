"""What the forms of a pin cost a git host: ``python -m tests.authority.pin_costs FOLDER``.

The real source-controller fetches a repository with 20,000 commits, by each form of ``spec.ref``: the first
time, when it reads again and nothing is new, and after it lost its storage.
"""

from __future__ import annotations

import base64
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import HttpServer
from localcloud.git.world.git_commands import git_environment
from tests.authority.programs import SOURCE
from tests.authority.real_flux import RealFlux, eventually, real_flux

COMMITS = 20_000
FILES = 3_000
PULLS = 2_000
"""GitHub names the head of each pull request to whoever asks for refs."""
REPOSITORY = "acme/fleet"
_SECONDS = 600.0


def forms(commit: str) -> Mapping[str, Mapping[str, str]]:
    """Return the forms of ``spec.ref`` that show a commit, and today's."""
    return {
        "branch": {"branch": "main"},
        "branch-and-commit": {"branch": "main", "commit": commit},
        "commit": {"commit": commit},
        "name-of-own-ref": {"name": f"refs/roadstead/{commit}"},
        "name-of-branch": {"name": f"refs/heads/roadstead/pin/{commit}"},
        "own-branch": {"branch": f"roadstead/pin/{commit}"},
        "name-of-tag": {"name": f"refs/tags/roadstead/{commit}"},
        "own-tag": {"tag": f"roadstead/{commit}"},
    }


def write_history(bare: Path, *, commits: int = COMMITS, files: int = FILES) -> str:
    """Fill a bare repository; return the commit 50 before the head of main.

    Manifests of a platform over twenty clusters; every tenth commit seals a secret again.
    """
    _git(bare, "config", "gc.auto", "0")
    importing = subprocess.Popen(
        ["git", "fast-import", "--quiet", "--force"], cwd=bare, env=git_environment(), stdin=subprocess.PIPE
    )
    assert importing.stdin is not None
    with importing.stdin as stream:
        _write_commits(stream, random.Random(1), commits, files)
    assert importing.wait() == 0
    _git(bare, "repack", "-adq")
    pinned = _git(bare, "rev-parse", "main~50")
    refs = [f"refs/{where}/{pinned}" for where in ("roadstead", "heads/roadstead/pin", "tags/roadstead")]
    refs += [f"refs/pull/{number}/head" for number in range(1, PULLS + 1)]
    updates = "".join(f"create {ref} {pinned}\n" for ref in refs)
    subprocess.run(
        ["git", "update-ref", "--stdin"],
        cwd=bare,
        env=git_environment(),
        input=updates.encode(),
        check=True,
    )
    _git(bare, "pack-refs", "--all")
    return pinned


def _write_commits(stream: IO[bytes], chance: random.Random, commits: int, files: int) -> None:
    paths = [
        f"platform/{('base', f'clusters/c{number % 20:02}')[number % 3 > 0]}/app-{number % 150}/{number}.yaml"
        for number in range(files)
    ]
    for number in range(commits):
        message = f"Change {number}\n".encode()
        head = f"commit refs/heads/main\ncommitter P <p@example.org> {1_600_000_000 + number * 600} +0000\n"
        stream.write(head.encode() + f"data {len(message)}\n".encode() + message)
        changed = paths if not number else chance.sample(paths, chance.randint(1, 3))
        for path in changed:
            content = _manifest(path, chance, sealed=number % 10 == 0 and path is changed[0])
            stream.write(f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n")


def _manifest(path: str, chance: random.Random, *, sealed: bool) -> bytes:
    name = path.rpartition("/")[2].removesuffix(".yaml")
    kind = "apiVersion: v1\nkind: ConfigMap"
    lines = (f"  key-{line}: value-{name}-{line}-{chance.randrange(10)}\n" for line in range(40))
    content = f"data:\n{''.join(lines)}"
    if sealed:
        kind = "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret"
        text = base64.b64encode(chance.randbytes(1500)).decode()
        content = f"spec: {{encryptedData: {{token: {text}}}}}"
    return f"{kind}\nmetadata: {{name: n{name}, namespace: team}}\n{content}\n".encode()


class CountingFront:
    """Passes on what is asked below ``/FORM/``, and counts the bytes and the requests of each form."""

    def __init__(self, target: str) -> None:
        self._client = httpx.Client(base_url=target, trust_env=False, timeout=300)
        self._lock = threading.Lock()
        self.sent: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self._server = HttpServer(Request.application(self._pass_on))
        self.url = self._server.url

    def close(self) -> None:
        """Answer no more requests."""
        self._server.close()
        self._client.close()

    def _pass_on(self, request: Request) -> Response:
        form, _, rest = request.full_path.lstrip("/").partition("/")
        headers = {
            name: request.headers[name]
            for name in ("Content-Type", "Git-Protocol", "Accept")
            if name in request.headers
        }
        reply = self._client.request(request.method, f"/{rest}", headers=headers, content=request.get_data())
        with self._lock:
            self.sent[form] += len(reply.content)
            self.requests[form] += 1
        returned = {name: reply.headers[name] for name in ("Content-Type",) if name in reply.headers}
        return Response(reply.content, reply.status_code, returned)


@dataclass(frozen=True)
class Cost:
    """What one reconciliation took: bytes from the host, requests, seconds, and the controller's memory."""

    sent: int
    requests: int
    seconds: float
    peak_megabytes: int

    def __str__(self) -> str:
        """Return it as cells of a table."""
        return f"{self.sent:>11,} | {self.requests} | {self.seconds:5.1f} | {self.peak_megabytes:>4}"


class Costs:
    """Measures one form after the other, so that none takes the controller's time from another."""

    def __init__(self, flux: RealFlux, front: CountingFront) -> None:
        self._flux, self._front = flux, front

    def first(self, form: str, ref: Mapping[str, str], *, interval: str = "1h") -> Cost:
        """Create a source, and wait for its artifact."""
        spec = {"interval": interval, "timeout": "5m", "ref": dict(ref)}
        spec["url"] = f"{self._front.url}/{form}/{REPOSITORY}.git"
        with _Measured(self._front, form) as measured:
            self._flux.flux_object("GitRepository", form, spec)
            assert eventually(lambda: bool(self.status(form).get("artifact")), _SECONDS), self.status(form)
        return measured.cost

    def again(self, form: str, token: str) -> Cost:
        """Ask for a reconciliation, and wait until the source has handled it."""
        with _Measured(self._front, form) as measured:
            self._flux.request("GitRepository", form, token)
            assert eventually(lambda: self.status(form).get("lastHandledReconcileAt") == token, _SECONDS)
        return measured.cost

    def after_loss(self, form: str) -> Cost:
        """Replace the controller and its storage, and wait until the source has been stored again."""
        with _Measured(self._front, form, fresh=True) as measured:
            before = self._written(form)
            self._flux.restart_sources()
            assert eventually(lambda: self._written(form) not in ("", before), _SECONDS)
        return measured.cost

    def remove(self, form: str) -> None:
        """Delete a source."""
        self._flux.delete("GitRepository", form)
        assert eventually(lambda: self._flux.get("GitRepository", form) is None)

    def status(self, form: str) -> Mapping[str, Any]:
        """Return the status of a source."""
        return (self._flux.get("GitRepository", form) or {}).get("status") or {}

    def _written(self, form: str) -> str:
        return str((self.status(form).get("artifact") or {}).get("lastUpdateTime", ""))


class _Measured:
    def __init__(self, front: CountingFront, form: str, *, fresh: bool = False) -> None:
        self._front, self._form, self._fresh = front, form, fresh

    def __enter__(self) -> _Measured:
        if not self._fresh:
            for process in _source_controllers():
                (process / "clear_refs").write_text("5")
        self._before = self._front.sent[self._form], self._front.requests[self._form]
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.monotonic() - self._began
        sent, requests = (
            self._front.sent[self._form] - self._before[0],
            self._front.requests[self._form] - self._before[1],
        )
        peak = max((_peak_megabytes(process) for process in _source_controllers()), default=0)
        self.cost = Cost(sent, requests, seconds, peak)


def _source_controllers() -> Iterator[Path]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").resolve() == SOURCE.path.resolve():
                yield process
        except OSError:
            continue


def _peak_megabytes(process: Path) -> int:
    lines = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:"))


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=git_environment(), check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def main() -> int:
    """Print a table of all forms."""
    folder = Path(sys.argv[1]).resolve()
    with real_flux(folder) as flux, closing(CountingFront(flux.host.url)) as front:
        bare = flux.host.create_repository(REPOSITORY).path
        pinned = write_history(bare)
        print(_git(bare, "count-objects", "-vH"), flush=True)
        costs = Costs(flux, front)
        for form, ref in forms(pinned).items():
            print(f"{form:18} | first      | {costs.first(form, ref)}", flush=True)
            print(f"{'':18} | again      | {costs.again(form, '1')}", flush=True)
            print(f"{'':18} | again      | {costs.again(form, '2')}", flush=True)
            print(f"{'':18} | after loss | {costs.after_loss(form)}", flush=True)
            artifact = costs.status(form)["artifact"]
            print(f"{'':18} | {artifact['revision']} {artifact['size']:,} bytes", flush=True)
            costs.remove(form)
    return 0


if __name__ == "__main__":
    sys.exit(main())
