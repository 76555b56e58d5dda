"""Lints, formats and compiles the templates with Microsoft's compiler: ``python -m tools.bicep``.

The compiler is the ``bicep`` on PATH, or the program that BICEP names. What it writes is committed, so that
neither a deployment nor a test needs it. Without a compiler, the digests of what it read and wrote tell
that a template was changed and not compiled again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INFRA = Path("infra")
MAIN = INFRA / "main.json"
ALONE = (INFRA / "access.bicep", INFRA / "access_of_group.bicep", INFRA / "events.bicep")
"""What the owner of target subscriptions deploys."""
PARAMETER_FILES = (*sorted(Path("tests/infra").glob("*.bicepparam")), INFRA / "example.bicepparam")
SNAPSHOTS = Path("tests/infra")
DIGESTS = SNAPSHOTS / "SHA256SUMS"
PLACE = {
    **{"--subscription-id": "00000000-0000-0000-0000-000000000001", "--location": "westeurope"},
    "--tenant-id": "00000000-0000-0000-0000-00000000000a",
}
"""Where a deployment is pretended to go, for what depends on that."""


class Refused(Exception):
    """The compiler has something to say of a template or of parameters."""


def compiler() -> str | None:
    """Return the compiler of this machine, or None."""
    return os.environ.get("BICEP") or shutil.which("bicep")


def compiled(bicep: str, template: Path = INFRA / "main.bicep") -> str:
    """Return a template with its modules as JSON; one with any diagnostic is refused."""
    return _run(bicep, "build", str(template), "--stdout")


def formatted(bicep: str) -> dict[str, str]:
    """Return every file of ``infra/`` as the compiler formats it, by name."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (*INFRA.glob("*.bicep"), *INFRA.glob("*.bicepparam"), INFRA / "bicepconfig.json"):
            shutil.copy(path, folder)
        _run(bicep, "format", "--pattern", f"{folder}/*.bicep")
        return {path.name: path.read_text() for path in sorted(Path(folder).glob("*.bicep"))}


def resolved(bicep: str, parameters: str) -> str:
    """Return the resources that a deployment with the text of a parameter file would write, as JSON.

    The file stands in ``tests/infra``. What a template refuses of the parameters, and what cannot
    resolve before a deployment, is refused.
    """
    with tempfile.TemporaryDirectory(dir=SNAPSHOTS) as folder:
        path = Path(folder) / "given.bicepparam"
        path.write_text(parameters.replace("using '", "using '../", 1))
        place = [part for pair in PLACE.items() for part in pair]
        _run(bicep, "snapshot", str(path), "--mode", "overwrite", *place)
        snapshot = json.loads(path.with_suffix(".snapshot.json").read_text())
    if snapshot["diagnostics"]:
        raise Refused("\n".join(snapshot["diagnostics"]))
    return json.dumps(snapshot, indent=1, sort_keys=True) + "\n"


def parameter_texts() -> dict[str, str]:
    """Return the texts of the parameter files by name, each as if it stood in ``tests/infra``."""
    return {
        path.stem: path.read_text().replace("using 'main.bicep'", "using '../../infra/main.bicep'")
        for path in PARAMETER_FILES
    }


def digests() -> str:
    """Return the SHA-256 of all that the compiler reads and writes, as ``sha256sum`` has them."""
    read = [*INFRA.glob("*.bicep"), INFRA / "bicepconfig.json", INFRA / "workbook.json", *PARAMETER_FILES]
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.as_posix()}\n"
        for path in sorted([*read, MAIN, *SNAPSHOTS.glob("*.snapshot.json")])
    ]
    return "".join(lines)


def _run(bicep: str, *arguments: str) -> str:
    environment = os.environ | {"GITHUB_TOKEN": "x" * 30, "GITHUB_WEBHOOK_SECRET": "x" * 30}
    done = subprocess.run([bicep, *arguments], capture_output=True, text=True, env=environment, check=False)
    said = "\n".join(line for line in done.stderr.splitlines() if line.strip())
    if done.returncode or "Warning" in said or "Error" in said:
        raise Refused(said or done.stdout)
    return done.stdout


def main() -> None:
    """Write the formatted templates, what they compile to, and what the parameter files resolve to."""
    bicep = compiler()
    if bicep is None:
        sys.exit("No Bicep compiler: install it (az bicep install), or set BICEP=/path/to/bicep.")
    try:
        for name, text in formatted(bicep).items():
            (INFRA / name).write_text(text)
        MAIN.write_text(compiled(bicep))
        for template in ALONE:
            compiled(bicep, template)
        for name, text in parameter_texts().items():
            (SNAPSHOTS / f"{name}.snapshot.json").write_text(resolved(bicep, text))
        DIGESTS.write_text(digests())
    except Refused as refused:
        sys.exit(str(refused))


if __name__ == "__main__":
    main()
