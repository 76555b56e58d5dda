"""What is asked for, laid on what exists: only the leaves that are asked for are compared and written.

ARM gives many values back in another spelling than they were sent in; ``RULES`` says where that is no
difference. A path is the tuple of keys below ``properties``; in a pattern ``*`` stands for one key.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Path = tuple[str, ...]


@dataclass(frozen=True)
class Leaf:
    """One value that differs: where, what Azure has (None: nothing), and what is asked for."""

    path: Path
    old: Any
    new: Any

    def __str__(self) -> str:
        return ".".join(self.path)

    @property
    def shown_old(self) -> Any:
        """What Azure has, for people."""
        return "nothing" if self.old in (None, "", [], {}) else self.old


EXACT = (
    *("tags.*", "nodeTaints", "nodeInitializationTaints", "messageOfTheDay"),
    *("httpProxyConfig.trustedCa", "securityProfile.customCATrustCertificates"),
    "linuxProfile.ssh.publicKeys",
)
"""Text whose letter case counts; elsewhere (enums, resource ids, regions) ARM does not tell case apart."""

WHOLE = ("nodeLabels", "identity.userAssignedIdentities")
"""Maps that are replaced, not merged: what is not asked for is taken away."""

ORDERED = ("networkProfile.ipFamilies", "networkProfile.podCidrs", "networkProfile.serviceCidrs")
"""Lists whose order counts: the first IP family is the primary one. All others are sets."""

ADDED_TO = ("httpProxyConfig.noProxy",)
"""Lists that Azure adds to: it is enough that what is asked for is among them."""

ABSENT: Mapping[str, Any] = {
    "autoUpgradeProfile.upgradeChannel": "none",
    "networkProfile.networkPolicy": "none",
    "enableRBAC": True,
    "storageProfile.diskCSIDriver.enabled": True,
    "storageProfile.fileCSIDriver.enabled": True,
    "storageProfile.snapshotController.enabled": True,
    "scaleSetPriority": "Regular",
    "scaleDownMode": "Delete",
    "workloadRuntime": "OCIContainer",
    "podIPAllocationMode": "DynamicIndividual",
    "gpuProfile.driver": "Install",
}
"""What it means that ARM shows nothing; elsewhere nothing is the same as false, "" and an empty list."""


def overlay(existing: Mapping[str, Any], wanted: Mapping[str, Any]) -> tuple[dict[str, Any], list[Leaf]]:
    """Return ``existing`` with what is asked for laid over it, and the leaves that this changed."""
    found: list[Leaf] = []
    merged = _laid(dict(existing), wanted, (), found)
    return merged, found


def laid_over(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with ``over`` merged in, deep; lists and scalars of ``over`` replace."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = laid_over(below, value)
        else:
            merged[key] = value
    return merged


def matches(path: Path, patterns: Iterable[str]) -> bool:
    """Tell whether a path is named by one of the patterns."""
    return any(_match(path, pattern.split(".")) for pattern in patterns)


def _match(path: Path, pattern: list[str]) -> bool:
    return len(path) == len(pattern) and all(p in ("*", key) for key, p in zip(path, pattern, strict=True))


def _laid(existing: Any, wanted: Mapping[str, Any], path: Path, found: list[Leaf]) -> dict[str, Any]:
    merged: dict[str, Any] = dict(existing) if isinstance(existing, Mapping) else {}
    spelled = {key.lower(): key for key in merged}
    for key, value in wanted.items():
        # JSON property names, tag names and add-on names do not differ by case in ARM.
        name = key if key in merged else spelled.get(key.lower(), key)
        below = path if not path and key == "properties" else (*path, key)
        old = merged.get(name)
        if isinstance(value, Mapping) and value and not matches(below, WHOLE):
            before = len(found)
            laid = _laid(old, value, below, found)
            if old is not None or len(found) > before:
                merged[name] = laid
        elif not same(value, old, below):
            found.append(Leaf(below, old, value))
            merged[name] = value
    return merged


def alike(one: Any, other: Any, path: Path = ()) -> bool:
    """Tell whether two JSON values are equal but for the order of lists whose order means nothing.

    ``path`` may begin with more keys than ARM's, such as a manifest's ``spec``.
    """
    return _in_order(one, path) == _in_order(other, path)


def _in_order(value: Any, path: Path) -> str:
    """Return canonical JSON; there 1 and true differ, which are equal in Python."""
    if isinstance(value, Mapping):
        inner = {str(key): _in_order(below, (*path, str(key))) for key, below in value.items()}
        return json.dumps(inner, sort_keys=True)
    if isinstance(value, list | tuple):
        items = [_in_order(item, path) for item in value]
        return json.dumps(items if ".".join(path[-2:]) in ORDERED else sorted(items))
    return json.dumps(value)


def same(wanted: Any, old: Any, path: Path = ()) -> bool:
    """Tell whether ARM means the same by two values of one field."""
    if old is None:
        return _absent(wanted, path)
    if isinstance(wanted, Mapping):
        return isinstance(old, Mapping) and _same_map(wanted, old, path)
    if isinstance(wanted, list | tuple):
        return isinstance(old, list | tuple) and _same_list(list(wanted), list(old), path)
    return bool(_plain(wanted, path) == _plain(old, path))


def _absent(wanted: Any, path: Path) -> bool:
    meant = ABSENT.get(".".join(path))
    if meant is not None:
        return bool(wanted == meant)
    return wanted is None or wanted is False or wanted in ("", [], (), {})


def _same_map(wanted: Mapping[str, Any], old: Mapping[str, Any], path: Path) -> bool:
    if path == ("nodeLabels",):
        return dict(wanted) == dict(old)
    if matches(path, WHOLE):
        return {key.lower() for key in wanted} == {key.lower() for key in old}
    found: list[Leaf] = []
    _laid(old, wanted, path, found)
    return not found


def _same_list(wanted: list[Any], old: list[Any], path: Path) -> bool:
    if any(isinstance(item, Mapping) for item in wanted):
        left = list(old)
        for item in wanted:
            match = next((other for other in left if same(item, other, path)), None)
            if match is None:
                return False
            left.remove(match)
        return not left
    new, now = [_plain(item, path) for item in wanted], [_plain(item, path) for item in old]
    if matches(path, ORDERED):
        return new == now
    return set(new) <= set(now) if matches(path, ADDED_TO) else set(new) == set(now)


def _plain(value: Any, path: Path) -> Any:
    if not isinstance(value, str) or matches(path, EXACT):
        return value
    try:
        return str(ipaddress.ip_network(value))  # ARM shows 1.2.3.4 as 1.2.3.4/32
    except ValueError:
        return value.lower()
