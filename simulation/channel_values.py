"""What a channel has, by docs/how-to/keep-up-with-versions.md, and what files and clusters have of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

import yaml

from localcloud.azure.world.catalog import OFFERED
from simulation.desired_files import path_of
from simulation.desired_state import (
    COMPONENTS,
    IMAGE,
    NEWEST_IMAGE,
    VERSION,
    DesiredCluster,
    SharedEnvironment,
)

CHANNEL = "channel"
FIELDS = (VERSION, IMAGE, COMPONENTS)
LEFT, FROM = (1, 35), date(2027, 1, 30)
"""The minor that the channel ``patch`` leaves, and from when: 60 days before its end, the last of March
2027 by learn.microsoft.com/azure/aks/supported-kubernetes-versions."""


def what_follows(own: SharedEnvironment, withheld: Collection[str], today: date) -> Mapping[str, str]:
    """Return what the channels of an environment have that is newer, by the fields of its file."""
    found = {VERSION: _version(own.channel, own.version, withheld, today)} if own.version else {}
    if own.image and NEWEST_IMAGE not in withheld:
        found[IMAGE] = NEWEST_IMAGE
    return {f: value for f, value in found.items() if as_numbers(value) > as_numbers(own.values[f])}


def _version(channel: str, present: str, withheld: Collection[str], today: date) -> str:
    offered = [
        version
        for version in OFFERED
        if version not in withheld and (channel == "lts" or _minor(version) >= _minor("1.34"))
    ]
    newest = {_minor(version): version for version in sorted(offered, key=as_numbers)}
    minors = sorted(newest)
    if channel == "lts":
        return newest[_minor(present)]
    if channel == "patch":
        own = _minor(present)
        return newest[own if own > LEFT or today < FROM else (own[0], own[1] + 1)]
    return newest[minors[-1 if channel == "rapid" else -2]]


def _minor(version: str) -> tuple[int, ...]:
    return as_numbers(version)[:2]


def as_numbers(version: str) -> tuple[int, ...]:
    """Return a version for comparing."""
    return tuple(map(int, version.split(".")))


def given_in(files: Mapping[str, bytes], environment: SharedEnvironment) -> Mapping[str, str]:
    """Return what an environment has in some files of what promotions and channels give it."""
    spec = yaml.safe_load(files[path_of(environment)])["spec"]
    spec = spec if environment.channel else spec["defaults"]
    return {field: value for field in FIELDS if (value := in_spec(spec, field))}


def in_spec(spec: Mapping[str, Any], field: str) -> str:
    """Return what a spec has at a path, "" for nothing."""
    found: Any = spec
    for step in field.split("."):
        found = (found or {}).get(step)
    return str(found or "")


def values_of(cluster: DesiredCluster) -> Mapping[str, str]:
    """Return what a cluster has of what channels give."""
    return {VERSION: cluster.version, IMAGE: cluster.image}
