"""What only one object can have, and several ask for: a port of all nodes, a Secret, a route, the same pods.

Sources: ``pkg/registry/core/service/portallocator`` (a port of the nodes), cert-manager/cert-manager#4846 and
#6992 (two certificates write one Secret in turns), kubernetes/ingress-nginx#8216 (its webhook refuses the
second), kubernetes#108920 and kubernetes.io,
"Deployments", Selector (controllers with one selector, whose autoscalers and budgets count the others' pods).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from shared.json_tree import Json
from shared.language.resolve.problems import Path
from shared.platform.changes.objects import value_at
from shared.platform.inventory import BuiltObject, ObjectId, Owner
from shared.platform.rules.finding import (
    ClusterPlatform,
    Finding,
    is_kind,
    is_open,
    mapping,
    named,
    objects_in,
)

_Keys = Iterator[tuple[Path, tuple[Any, ...]]]


class _Row(NamedTuple):
    """What objects of some kinds have, each with its field; ``message`` says what several of them do."""

    group: str
    kinds: tuple[str, ...]
    keys: Callable[[Json], _Keys]
    message: str
    is_of_cluster: bool = False
    is_note: bool = False


def taken_twice(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what several objects have and only one can, at the last of them."""
    for rule in _ROWS:
        having: dict[tuple[str, ...], list[tuple[Owner, ObjectId, BuiltObject, Path]]] = {}
        for owner, name, built in platform.objects:
            for path, key in rule.keys(built.manifest) if is_kind(name, rule.group, *rule.kinds) else ():
                texts = tuple(map(str, key))  # a value may have any form
                if not any(map(is_open, texts)):
                    where = "" if rule.is_of_cluster else name.namespace
                    having.setdefault((where, *texts), []).append((owner, name, built, path))
        for places in having.values():
            names = dict.fromkeys(str(name) for _, name, _, _ in places)
            if len(names) > 1:
                owner, name, built, path = places[-1]
                message = f"{named([*names])} {rule.message}"
                yield Finding(built.file or owner.file, name, path, message, is_note=rule.is_note)


def _node_ports(service: Json) -> _Keys:
    for number, port in objects_in(value_at(service, "spec.ports")):
        if port.get("nodePort"):
            yield ("spec", "ports", number, "nodePort"), (port["nodePort"], port.get("protocol") or "TCP")


def _secret(certificate: Json) -> _Keys:
    if value_at(certificate, "spec.secretName"):
        yield ("spec", "secretName"), (value_at(certificate, "spec.secretName"),)


def _routes(ingress: Json) -> _Keys:
    marks = mapping(value_at(ingress, "metadata.annotations"))
    if any(key.endswith("/canary") for key in map(str, marks)):
        return
    chosen = value_at(ingress, "spec.ingressClassName") or marks.get("kubernetes.io/ingress.class") or ""
    for number, rule in objects_in(value_at(ingress, "spec.rules")):
        for place, entry in objects_in(value_at(rule, "http.paths")):
            route = (rule.get("host") or "", entry.get("path") or "/", entry.get("pathType") or "")
            yield ("spec", "rules", number, "http", "paths", place, "path"), (chosen, *route)


def _selector(workload: Json) -> _Keys:
    chosen: Mapping[str, Any] = mapping(value_at(workload, "spec.selector"))
    if chosen:
        yield ("spec", "selector"), (json.dumps(chosen, sort_keys=True, default=str),)


_ROWS = (
    _Row(
        "", ("Service",), _node_ports, "want one port of the nodes; the API server refuses the second", True
    ),
    _Row(
        "cert-manager.io",
        ("Certificate",),
        _secret,
        "write one Secret, which has the certificate of one of them; give each its own",
    ),
    _Row(
        "networking.k8s.io",
        ("Ingress",),
        _routes,
        "have one host and path: ingress-nginx refuses the second, others choose one of them; keep one",
        True,
        True,
    ),
    _Row(
        "apps",
        ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"),
        _selector,
        "have one selector, so Services, budgets and autoscalers take the pods of one for those of another; "
        "give each a label of its own",
        is_note=True,
    ),
)
