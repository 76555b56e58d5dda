"""Fleets in which environments have a channel of versions."""

from __future__ import annotations

from tests.support.promotions import RULE, files

CHANNEL = b"spec:\n  kubernetes: {channel: stable}\n  defaults:\n"


IMAGES = CHANNEL.replace(b"kubernetes: {channel: stable}", b"nodeImages: {channel: NodeImage}") + (
    b"    kubernetesVersion: '1.36'\n    autoUpgradeProfile: {nodeOSUpgradeChannel: None}\n"
)
"""Of an environment that follows node images alone."""


def image(name: str, version: str = "202510.19.1") -> bytes:
    return versions(name).replace(
        b"kubernetesVersion: '1.36.3'", f"minNodeImageVersion: '{version}'".encode()
    )


def versions(name: str, version: str = "1.36.3", more: str = "") -> bytes:
    head = f"apiVersion: roadstead.dev/v1alpha1\nkind: Versions\nmetadata: {{name: {name}}}\n"
    return f"{head}spec:\n  kubernetesVersion: {version!r}\n{more}".encode()


def fleet(*names: str, version: str = "", more: str = "", channel: bytes = CHANNEL) -> dict[str, bytes]:
    """Return a fleet in which some environments have a channel, with their versions."""
    rule = RULE.replace("version", "version, images") if b"nodeImages" in channel else RULE
    found = files(test=version, prod="1.35", extra=rule)
    if "production" in names:
        found |= files(test=version, prod="", extra=rule)
    for name in names:
        path = f"environments/{name}.yaml"
        found[path] = found[path].replace(b"spec:\n  defaults:\n", channel)
        found[f"environments/{name}.versions.yaml"] = versions(name, more=more)
    return found
