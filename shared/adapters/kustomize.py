"""Runs kustomize, on its own or within kubectl, on files that may be hostile.

It gets a folder of its own, no environment, no ``PATH`` (it would call git), proxies that lead nowhere, and
limits of time, memory, processor and output.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from shared.masking import without_secrets
from shared.platform.builds.build import BuildFailed, NoKustomize
from shared.platform.source.tree import joined

SECONDS = 30
MEMORY = 1024**3
"""Bytes that it may write to; building a large platform takes about 100 MB."""
OUTPUT = 64 * 1024**2
"""Bytes of YAML; etcd would not take so many objects of a size that Kubernetes allows."""
_MESSAGE = 600
_NOWHERE = "http://127.0.0.1:9"
_WRAPPED = (
    (
        re.compile(r"accumulation err='([^\n]*?)': must build at directory: [^\n]*?: file is not directory"),
        r"\1",
    ),
    (
        re.compile(
            r"accumulation err='accumulating resources from '[^\n']*': read [^\n:]*: is a directory': "
        ),
        "",
    ),
    (re.compile(r"(accumulating resources: )?(recursed accumulation of path '[^\n']*': )"), ""),
    (re.compile(r" ?&\{0x[0-9a-f]+(?: (?:0x[0-9a-f]+|<nil>))*\}"), ""),
    (re.compile(r"candidate root '([^\n']*)' contains visited root '[^\n']*'"), r"\1 includes itself"),
)
"""What kustomize says around the fault, once for each folder that leads to it, and places in its memory.

Those are others in each build, so a fault that is known already would be a new one."""
_PREFIX = re.compile(r"^error: ", re.IGNORECASE)
_LOGGED = re.compile(
    r'^E[0-9]{4} .*?\] "command failed" err=(?:<\n(.*)\n >|("(?:[^"\\]|\\.)*"))\s*$', re.DOTALL
)
"""How kubectl says it: as an entry of a log, with the time and its process (k8s.io/klog ``serialize``)."""


OWN = Path(__file__).parents[2] / "bin" / "kustomize"
"""The program that the package of the app brings along."""
_SUBCOMMANDS = {"kubectl": "kustomize"}


def kustomize_program(path: str = "", own: Path = OWN) -> KustomizeProgram | None:
    """Return the kustomize of a setting, or that of the package, or of the machine; None where there is none.

    ``path`` is the path of a program called kustomize or kubectl, which has one inside.
    """
    for name in [path] if path else [*_runnable(own), "kustomize", "kubectl"]:
        found = shutil.which(name)
        if found:
            return KustomizeProgram((found, _SUBCOMMANDS.get(Path(found).stem, "build")))
    return None


def _runnable(program: Path) -> Iterator[str]:
    """Yield the program, or a copy where a package was unpacked without the modes of its files."""
    if os.access(program, os.X_OK):
        yield str(program)
    elif program.is_file():
        copy = Path(tempfile.mkdtemp(prefix="kustomize-"), program.name)
        shutil.copyfile(program, copy)
        copy.chmod(0o700)
        yield str(copy)


class KustomizeProgram:
    """Kustomize by its command, such as ``("kubectl", "kustomize")`` or ``("kustomize", "build")``."""

    def __init__(self, command: Sequence[str], *, seconds: float = SECONDS) -> None:
        program = str(Path(shutil.which(command[0]) or command[0]).absolute())  # it runs in another folder
        self._command, self._seconds = (program, *command[1:]), seconds

    @cached_property
    def version(self) -> str:
        """The version that the program says."""
        kubectl = self._command[-1] == "kustomize"
        arguments = ["version", "--client"] if kubectl else ["version"]
        with tempfile.TemporaryDirectory(prefix="kustomize-") as folder:
            try:
                out, _ = self._run(Path(folder), [self._command[0], *arguments])
            except (BuildFailed, NoKustomize):
                return ""
        found = re.search(r"v[0-9]+\.[0-9]+\.[0-9]+", out.decode(errors="replace").rpartition("Kustomize")[2])
        return f"kustomize {found[0]}" if found else ""

    def build(self, files: Mapping[str, bytes], folder: str) -> bytes:
        """Return the YAML of a folder; raise BuildFailed with kustomize's own message."""
        with tempfile.TemporaryDirectory(prefix="kustomize-") as whole:
            root = Path(whole, "tree")
            for name, content in files.items():
                if joined("", name) != name:
                    raise BuildFailed(f"{name} is no path of a repository")
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            (root / folder).mkdir(parents=True, exist_ok=True)
            arguments = [*self._command, "--load-restrictor=LoadRestrictionsNone", str(root / folder)]
            out, problem = self._run(Path(whole), arguments)
            if problem is not None:
                raise BuildFailed(_readable(problem, root))
            return out

    def _run(self, folder: Path, arguments: Sequence[str]) -> tuple[bytes, str | None]:
        """Return the output, and what it says when it fails."""
        out, err = folder / "out", folder / "err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            try:
                process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    cwd=folder,
                    env=_environment(folder),
                    start_new_session=True,
                )
            except OSError as error:
                raise NoKustomize(f"{arguments[0]} does not start: {error.strerror}") from error
            with _ended(process):
                _limit(process.pid)
                try:
                    code = process.wait(self._seconds)
                except subprocess.TimeoutExpired:
                    raise BuildFailed(f"the build takes longer than {self._seconds:g} seconds") from None
        if out.stat().st_size >= OUTPUT:
            raise BuildFailed(f"the build has more than {OUTPUT // 1024**2} MiB of output")
        problem = _read(err, 10_000).decode(errors="replace") if code else None
        if code < 0 or (problem is not None and "out of memory" in problem):
            raise BuildFailed("the build takes too much memory or processor time")
        return _read(out, OUTPUT), problem


def _environment(folder: Path) -> dict[str, str]:
    home = {name: str(folder) for name in ("HOME", "TMPDIR", "TEMP", "TMP", "XDG_CONFIG_HOME", "PATH")}
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _NOWHERE)
    windows = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    return {**home, **proxies, **windows, "GOMEMLIMIT": "512MiB", "GOMAXPROCS": "2"}


def _limit(process: int) -> None:
    """Limit a process where the system can: Linux limits one that runs already."""
    if sys.platform == "linux":
        import resource

        try:
            for limit, value in (
                (resource.RLIMIT_DATA, MEMORY),
                (resource.RLIMIT_CPU, SECONDS),
                (resource.RLIMIT_FSIZE, OUTPUT),
                (resource.RLIMIT_CORE, 0),
            ):
                resource.prlimit(process, limit, (value, value))
        except ProcessLookupError:
            pass  # it has ended already


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End the process, and what it has started, however the block ends."""
    try:
        yield
    finally:
        if process.poll() is None:
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()


def _read(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        return file.read(limit)


def _readable(problem: str, root: Path) -> str:
    """Return what kustomize says in one line, with paths of the repository."""
    places = {str(root), str(root.resolve())}
    for place in sorted(places, key=len, reverse=True):
        problem = problem.replace(f"{place}/", "").replace(place, "the root")
    if logged := _LOGGED.match(problem):
        problem = logged[1] or _unquoted(logged[2])
    for pattern, text in _WRAPPED:
        problem = pattern.sub(text, problem)
    lines = [
        line.strip() for line in problem.strip().splitlines() if not line.startswith(("# Warning", "20"))
    ]
    return without_secrets(_PREFIX.sub("", " ".join(lines)).strip() or "it gives no reason", _MESSAGE)


def _unquoted(text: str) -> str:
    """Return a string of Go's ``%q``, whose escapes here are those of JSON; another one stays as it is."""
    try:
        return str(json.loads(text))
    except ValueError:
        return text.strip('"')
