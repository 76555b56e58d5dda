"""Chromium and axe, from npm: ``python -m tests.support.chromium`` installs them.

The package has Chromium without a window, as it is built for AWS Lambda, with the libraries and a font that
a small machine lacks (github.com/Sparticuz/chromium). It is for Linux on x86-64. On another machine the
Chromium that is installed there serves.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from localcloud.common.programs import TOOLS
from localcloud.runtime.tools import ToolError, install_from_npm, node
from shared.frozen import dataclass

PINS = Path(__file__).parent.parent / "browser"
INSTALLED = TOOLS / "browser"
UNPACKED = INSTALLED / "unpacked"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FONTS = """\
<?xml version="1.0"?>
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>{fonts}</dir>
  <cachedir>{fonts}/cache</cachedir>
  <alias binding="strong"><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
  <alias binding="strong"><family>sans-serif</family><prefer><family>Open Sans</family></prefer></alias>
</fontconfig>
"""
"""The same letters on every machine, so that a picture of a page changes with the page alone."""


@dataclass(frozen=True)
class Chromium:
    """A program, and the variables of its environment."""

    program: str
    environment: dict[str, str]


def lacking() -> str:
    """Return why this machine can have no Chromium, "" where it can."""
    if _is_served() or _installed():
        return ""
    return "npm has Chromium for Linux on x86-64 alone, and none is installed here"


@cache
def chromium() -> Chromium:
    """Return the Chromium of this machine; raise ToolError where there can be none."""
    if lacking():
        raise ToolError(lacking())
    if not _is_served():
        return Chromium(_installed(), {})
    _install()
    environment = {"LD_LIBRARY_PATH": str(UNPACKED / "lib"), "FONTCONFIG_PATH": str(UNPACKED / "fonts")}
    return Chromium(str(UNPACKED / "chromium"), environment)


def axe() -> str:
    """Return the script that finds what keeps people from using a page."""
    _install()
    return (INSTALLED / "node_modules" / "axe-core" / "axe.min.js").read_text()


def is_required() -> bool:
    """Return whether a machine without Chromium is a defect: the one that decides about a commit."""
    return bool(os.environ.get("CI"))


def _installed() -> str:
    return next(filter(None, map(shutil.which, NAMES)), "")


def _is_served() -> bool:
    return (platform.system(), platform.machine()) == ("Linux", "x86_64")


def _install() -> None:
    """Install what is pinned, unless it is there."""
    pinned, done = (PINS / "package-lock.json").read_bytes(), UNPACKED / "package-lock.json"
    if done.is_file() and done.read_bytes() == pinned:
        return
    print("Installing Chromium for the tests of the console into .tools/browser, once ...", flush=True)
    install_from_npm(PINS, INSTALLED)
    shutil.rmtree(UNPACKED, ignore_errors=True)
    UNPACKED.mkdir()
    packed = INSTALLED / "node_modules" / "@sparticuz" / "chromium" / "bin"
    subprocess.run([node(), str(PINS / "unpack.cjs"), str(packed), str(UNPACKED)], check=True)
    for archive in sorted(UNPACKED.glob("*.tar")):
        subprocess.run(["tar", "-xf", str(archive), "-C", str(UNPACKED)], check=True)
        archive.unlink()
    (UNPACKED / "fonts" / "fonts.conf").write_text(FONTS.format(fonts=UNPACKED / "fonts"))
    (UNPACKED / "chromium").chmod(0o755)
    done.write_bytes(pinned)


if __name__ == "__main__":
    try:
        if not lacking() or is_required():
            chromium()
    except ToolError as error:
        sys.exit(str(error))
