"""The commands of the page about drift make and repair drift on a local cloud, as they stand there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from localcloud.runtime.options import ROOT, Options
from tests.support import fleet_files
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead

PAGE = ROOT / "docs" / "how-to" / "find-and-correct-drift.md"
SECTION = "## Try it on the local cloud\n"
QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})


def commands() -> list[list[str]]:
    """Return the commands of the section, in their order."""
    section = PAGE.read_text().partition(SECTION)[2]
    return [shlex.split(line) for line in re.findall(r"^\$ \.venv/bin/(.*)$", section, re.MULTILINE)]


def test_the_commands_of_the_page_make_drift_that_is_found_and_corrected(
    start: Start, tmp_path: Path
) -> None:
    operator = start(QUICK)
    (tmp_path / ".localcloud").symlink_to(operator.cloud.state)
    settings = {
        "ROADSTEAD_URL": operator.cloud.urls.functions,
        "ROADSTEAD_KEY": operator.cloud.settings["API_KEY_ADMIN"],
    }
    operator.wait_for_status(operator.push(fleet_files.example()), "success")

    def run(program: str, *arguments: str) -> str:
        if program == "roadstead":
            done = roadstead(*arguments, cwd=tmp_path, **settings)
        else:
            done = subprocess.run(
                [sys.executable, *arguments],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
                cwd=tmp_path,
                env={"PYTHONPATH": str(ROOT)},
            )
        assert done.returncode == 0, (program, arguments, done.stderr)
        return done.stdout

    def fields() -> set[str]:
        found = operator.api.drift("pacific-aks")["clusters"]
        return {field["path"] for each in found for field in each["fields"]}

    scale, tag, refresh, drift, replay = commands()
    run(*scale)
    run(*tag)
    run(*refresh)
    operator.wait(lambda: fields() == {"nodePools[apps].count", "tags.owner"}, "both changes are found")
    shown = run(*drift)
    assert "-    count: 3\n+    count: 5" in shown
    assert "+    owner: ann" in shown
    run(*replay)
    operator.wait(lambda: fields() == {"tags.owner"}, "the pool is scaled back, and the tag stays")
