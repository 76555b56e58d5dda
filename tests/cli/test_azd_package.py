"""What azd publishes: the hook before it packages, with a stand-in for make."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.lives

ROOT = Path(__file__).parent.parent.parent
HOOK = ROOT / "infra" / "hooks" / "package.py"
MAKE = f"""#!{sys.executable}
import pathlib, zipfile
pathlib.Path("built").open("a").write("once ")
with zipfile.ZipFile("dist/roadstead-1.0.0.zip", "w") as package:
    package.writestr("shared/version.py", 'VERSION = "1.0.0"\\n')
    package.writestr("host.json", pathlib.Path("host.json").read_text())
    program = zipfile.ZipInfo("bin/kustomize")
    program.external_attr = 0o100755 << 16
    package.writestr(program, "program")
"""


class Clone:
    """A folder as a clone has it, with a stand-in for make."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.taken = folder, folder / "dist" / "azd"
        (folder / "bin").mkdir()
        (folder / ".funcignore").write_text("bin\ndist\nbuilt\n.*\n")
        (folder / "host.json").write_text("{}")
        make = folder / "bin" / "make"
        make.write_text(MAKE)
        make.chmod(0o755)

    def start(self, **more: str) -> subprocess.Popen[str]:
        """Start the hook."""
        path = {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.Popen(
            [sys.executable, str(HOOK)],
            env={**os.environ, **path, **more},
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, **more: str) -> tuple[int, str]:
        """Run the hook; return its exit code and what it says."""
        hook = self.start(**more)
        out, err = hook.communicate()
        return hook.returncode, out + err

    @property
    def built(self) -> int:
        """How often make ran."""
        built = self.folder / "built"
        return built.read_text().count("once") if built.exists() else 0


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """Return a clone without a package."""
    return Clone(tmp_path)


def test_three_services_at_one_time_take_one_package_that_is_built_once(clone: Clone) -> None:
    hooks = [clone.start() for _ in range(3)]
    said = [hook.communicate() for hook in hooks]
    assert [hook.returncode for hook in hooks] == [0, 0, 0], said
    assert clone.built == 1
    assert (clone.taken / "host.json").read_text() == "{}"
    assert stat.S_IMODE((clone.taken / "bin" / "kustomize").stat().st_mode) == 0o755
    assert "".join(out for out, _ in said).count("Azure builds nothing") == 1


def test_code_that_is_newer_than_the_package_is_built_again(clone: Clone) -> None:
    clone.run()
    clone.run()
    assert clone.built == 1
    (clone.folder / "host.json").write_text('{"version": "2.0"}')
    made = (clone.folder / "dist" / "roadstead-1.0.0.zip").stat().st_mtime
    os.utime(clone.folder / "host.json", (made + 1, made + 1))
    assert clone.run()[0] == 0
    assert clone.built == 2
    assert "2.0" in (clone.taken / "host.json").read_text()


def test_the_package_of_a_release_is_taken_as_it_is_and_leaves_nothing_of_the_former_one(
    clone: Clone,
) -> None:
    clone.run()
    release = clone.folder / "release.zip"
    with zipfile.ZipFile(release, "w") as package:
        package.writestr("shared/version.py", 'VERSION = "2.0.0"\n')
    code, said = clone.run(ROADSTEAD_PACKAGE=str(release))
    assert (code, clone.built, "version 2.0.0" in said) == (0, 1, True)
    assert [path.name for path in clone.taken.rglob("*") if path.is_file()] == ["version.py"]


def test_what_is_no_package_or_cannot_be_built_is_refused_in_one_sentence(clone: Clone) -> None:
    wrong = clone.folder / "wrong.zip"
    wrong.write_bytes(b"none")
    code, said = clone.run(ROADSTEAD_PACKAGE=str(wrong))
    assert (code, "is no package of Roadstead" in said, "Traceback" in said) == (1, True, False)
    code, said = clone.run(PATH="/nowhere")
    assert (code, "ROADSTEAD_PACKAGE PATH" in said, "Traceback" in said) == (1, True, False)
    (clone.folder / "bin" / "make").write_text("#!/bin/sh\nexit 1\n")
    code, said = clone.run()
    assert (code, "make package failed" in said) == (1, True)
