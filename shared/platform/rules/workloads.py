"""Combinations of fields that the API server refuses always.

Source: ``pkg/apis/{core,apps,autoscaling,batch,networking,policy,rbac}/validation/validation.go`` of
Kubernetes. It is a part of those rules: what people get wrong, and what is
certain without the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any
from zoneinfo import available_timezones

from shared.language.resolve.problems import Path, nearest
from shared.platform.changes.objects import (
    PODS,
    WORKLOADS,
    is_marked,
    is_open,
    items,
    mapping,
    mapping_at,
    objects_in,
    value_at,
)
from shared.platform.rules.cluster_kinds import OF_CLUSTERS
from shared.platform.rules.finding import ClusterPlatform, Finding, is_unknown, lacks
from shared.platform.rules.flux_fields import OF_FLUX
from shared.platform.rules.names import is_label
from shared.platform.rules.pods import of_pod, once, port_name
from shared.platform.schemas.fields import Fault

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_NODE_PORTS = range(30_000, 32_768)
"""The default of ``--service-node-port-range``, which AKS does not change."""


def impossible_objects(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what validation of the API server refuses beyond types, and notes of what it takes in vain."""
    for owned in platform.objects:
        for rules, is_note in ((_RULES, False), (_NOTES, True)):
            for rule in rules.get(owned.id[:2], ()):
                for path, message in rule(owned.manifest):
                    yield owned.finding(path, message, is_note=is_note)


def _selector(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    wanted = mapping_at(manifest, "spec.selector.matchLabels")
    if all(lacks(manifest, f"spec.selector.match{kind}") for kind in ("Labels", "Expressions")):
        yield ("spec", "selector"), "a selector is needed; write matchLabels with labels of the template"
    for key, value in wanted.items():
        place = (*_LABELS, key)
        if value_at(manifest, place) != value and not (is_open(value) or is_unknown(manifest, place)):
            yield (
                ("spec", "selector", "matchLabels", str(key)),
                f"the template's labels have no {key}: {value}, so the selector does not match its own pods",
            )


_LABELS = ("spec", "template", "metadata", "labels")


def _service(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    spec = mapping_at(manifest, "spec")
    kind, ports = spec.get("type") or "ClusterIP", list(objects_in(spec.get("ports")))
    if kind == "ExternalName" and not spec.get("externalName"):
        yield ("spec",), "externalName is missing, and type ExternalName needs it"
    headless = spec.get("clusterIP") == "None"
    if lacks(manifest, "spec.ports") and not (headless or kind == "ExternalName" or is_open(kind)):
        yield ("spec",), "ports is missing; add at least one port"
    yield from once(spec.get("ports"), ("port", "protocol"), ("spec", "ports"))
    seen: set[str] = set()
    for number, port in ports:
        place: Path = ("spec", "ports", number)
        yield from port_name(port, "targetPort", place)
        of_node = port.get("nodePort")
        if kind in ("ClusterIP", "ExternalName") and of_node:
            yield (*place, "nodePort"), f"does not go with type {kind}; remove it, or write type: NodePort"
        elif isinstance(of_node, int) and of_node and of_node not in _NODE_PORTS:
            yield (*place, "nodePort"), f"must be 30000 to 32767, got {of_node}"
        name = str(port.get("name") or "")
        if len(ports) > 1 and not name:
            yield place, "name is missing, and a Service with several ports needs it"
        if name and name in seen:
            yield (*place, "name"), f"two ports are called {name}"
        seen.add(name)


def _rolling(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    strategy = mapping_at(manifest, "spec.strategy")
    rolling = mapping(strategy.get("rollingUpdate"))
    place = ("spec", "strategy", "rollingUpdate")
    if rolling and strategy.get("type") == "Recreate":
        yield place, "does not go with type Recreate; remove it"
    deadline, ready = (value_at(manifest, f"spec.{field}") for field in _SECONDS)
    given = 600 if deadline is None else deadline
    if isinstance(given, int) and isinstance(ready, int) and given <= ready:
        path = ("spec", "minReadySeconds" if deadline is None else "progressDeadlineSeconds")
        yield path, f"progressDeadlineSeconds, {given}, must be greater than minReadySeconds, {ready}"
    amounts = [str(rolling.get(field)).rstrip("%") for field in ("maxUnavailable", "maxSurge")]
    if amounts == ["0", "0"]:
        yield (*place, "maxUnavailable"), "must not be 0 where maxSurge is 0: no pod could be replaced"


_SECONDS = ("progressDeadlineSeconds", "minReadySeconds")


def _always(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    path = (*PODS["apps", "Deployment"], "restartPolicy")
    policy = value_at(manifest, path)
    if policy not in (None, "Always") and not is_open(policy):
        yield path, f"must be Always, got {policy}"


def _autoscaler(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    spec = mapping_at(manifest, "spec")
    least, most = spec.get("minReplicas"), spec.get("maxReplicas")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        yield ("spec", "maxReplicas"), f"must be at least minReplicas, {least}, got {most}"
    kinds = {str(metric.get("type")) for _, metric in objects_in(spec.get("metrics"))}
    if least == 0 and kinds and not ({"Object", "External"} & kinds or any(map(is_open, kinds))):
        yield ("spec", "minReplicas"), "must be at least 1, except by a metric of type Object or External"


def _cron(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    schedule = value_at(manifest, "spec.schedule")
    if isinstance(schedule, str) and not (is_open(schedule) or _is_schedule(schedule)):
        yield (
            ("spec", "schedule"),
            f"{schedule} is no schedule; write minute, hour, day, month and weekday, as 0 3 * * 1, or @daily",
        )
    zone = value_at(manifest, "spec.timeZone")
    known = _time_zones() if isinstance(zone, str) and not is_open(zone) else frozenset()
    if known and zone not in known:
        near = nearest(zone, sorted(known))
        hint = f"did you mean {near}?" if near else "such as Europe/Berlin"
        yield ("spec", "timeZone"), f"{zone} is no time zone of the IANA database; {hint}"


@cache
def _time_zones() -> frozenset[str]:
    """Return the names of all time zones: Python reads each of their files whenever it is asked."""
    return frozenset(available_timezones())


_UNITS_OF_TIME = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_NAMES_OF_TIME = re.compile(
    "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)", re.I
)
_MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def _is_schedule(text: str) -> bool:
    """Return whether a text is a schedule (robfig/cron ``ParseStandard``); what it names is not looked at."""
    if text.startswith("@"):
        return text in _MACROS or text.startswith("@every ")
    parts = text.split()
    return len(parts) == len(_UNITS_OF_TIME) and all(
        _is_part(item, *limits)
        for part, limits in zip(parts, _UNITS_OF_TIME, strict=True)
        for item in part.split(",")
    )


def _is_part(item: str, first: int, last: int) -> bool:
    if _NAMES_OF_TIME.search(item):
        return True
    found = re.fullmatch(r"(?:[*?]|([0-9]{1,9})(?:-([0-9]{1,9}))?)(?:/([0-9]+))?", item)
    if found is None:
        return False
    numbers = [int(number) for number in found.groups()[:2] if number]
    return (
        all(first <= number <= last for number in numbers) and numbers == sorted(numbers) and found[3] != "0"
    )


def _peers(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    for field, peers in (("ingress", "from"), ("egress", "to")):
        for number, rule in objects_in(value_at(manifest, ("spec", field))):
            where: Path = ("spec", field, number)
            for place, port in objects_in(rule.get("ports")):
                first, last = port.get("port"), port.get("endPort")
                if isinstance(first, int) and isinstance(last, int) and last < first:
                    yield (*where, "ports", place, "endPort"), f"must be at least port, {first}, got {last}"
            for place, peer in objects_in(rule.get(peers)):
                yield from _block(peer, (*where, peers, place))


def _block(peer: Mapping[str, Any], place: Path) -> Iterator[Fault]:
    block = mapping(peer.get("ipBlock"))
    if block and (peer.get("podSelector") is not None or peer.get("namespaceSelector") is not None):
        yield (*place, "ipBlock"), "does not go with a selector; make two entries of the list"
    whole, inner = block.get("cidr"), enumerate(items(block.get("except")))
    cidr = _network(whole)
    if isinstance(whole, str) and cidr is None and not is_open(whole):
        yield (*place, "ipBlock", "cidr"), f"{whole} is no block of addresses, such as 10.0.0.0/8"
    for number, text in inner if cidr else ():
        within = _network(text)
        if not is_open(text) and (within is None or not _is_inside(within, cidr)):
            yield (*place, "ipBlock", "except", number), f"{text} is no part of {whole}"


_Network = IPv4Network | IPv6Network


def _network(text: Any) -> _Network | None:
    try:
        return ip_network(text, strict=False) if isinstance(text, str) and "/" in text else None
    except ValueError:
        return None


def _is_inside(inner: _Network, outer: _Network | None) -> bool:
    """Return whether a block is a part of another one, and not all of it (``ValidateIPBlock``)."""
    if isinstance(inner, IPv4Network) and isinstance(outer, IPv4Network):
        return inner.subnet_of(outer) and inner != outer
    if isinstance(inner, IPv6Network) and isinstance(outer, IPv6Network):
        return inner.subnet_of(outer) and inner != outer
    return False


def _hosts(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    for number, rule in objects_in(value_at(manifest, "spec.rules")):
        host = str(rule.get("host") or "a")
        if not (is_open(host) or all(map(is_label, host.removeprefix("*.").split(".")))):
            place = ("spec", "rules", number, "host")
            yield place, f"{host} is no name of a host: lowercase letters, digits, hyphens and dots"


def _paths(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    marks = mapping_at(manifest, "metadata.annotations")
    chosen = value_at(manifest, "spec.ingressClassName")
    marked = marks.get("kubernetes.io/ingress.class", chosen)
    if chosen and marked != chosen and not (is_open(chosen) or is_open(marked)):
        message = f"must match spec.ingressClassName, {chosen}; remove it"
        yield ("metadata", "annotations", "kubernetes.io/ingress.class"), message
    for number, rule in objects_in(value_at(manifest, "spec.rules")):
        for place, entry in objects_in(value_at(rule, "http.paths")):
            path = entry.get("path")
            if isinstance(path, str) and path and not (is_open(path) or path.startswith("/")):
                yield (
                    ("spec", "rules", number, "http", "paths", place, "path"),
                    f"{path} is no absolute path; begin it with /",
                )


def _budget(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    spec = mapping_at(manifest, "spec")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield ("spec", "maxUnavailable"), "does not go with minAvailable; keep one of the two"
    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field)
        is_percent = isinstance(value, str) and (is_open(value) or re.fullmatch("[0-9]+%", value))
        is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if value is not None and not (is_percent or is_number):
            yield ("spec", field), "must be a number, or a percentage as 50%"


def _claim(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    if lacks(manifest, "spec.accessModes"):
        yield ("spec",), "accessModes is missing; add at least one"
    if lacks(manifest, "spec.resources.requests.storage"):
        yield ("spec",), "resources.requests.storage is missing; add it"


def _job(path: tuple[str, ...]) -> Callable[[Mapping[str, Any]], Iterator[Fault]]:
    def rule(manifest: Mapping[str, Any]) -> Iterator[Fault]:
        spec = mapping_at(manifest, path)
        policy = spec.get("restartPolicy")
        if spec and (policy is None or policy == "Always"):
            place = (*path, "restartPolicy") if policy else path
            yield place, "restartPolicy of a Job must be OnFailure or Never"

    return rule


def _keys(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    for field in ("data", "binaryData", "stringData"):
        for key in mapping(manifest.get(field)):
            if not is_open(key) and not (_KEY.fullmatch(str(key)) and len(str(key)) <= 253):
                yield (field, str(key)), "a key must be letters, digits, hyphens, dots and underscores"


def _twice(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    for key in mapping_at(manifest, "data").keys() & mapping_at(manifest, "binaryData").keys():
        yield ("binaryData", str(key)), "is a key of data too, and a key may be in one of the two"


_KEYS_OF_TYPES = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
"""The keys that ``ValidateSecret`` wants of a type. Where Flux merges, something else may have added them."""


def _type(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    kind = str(manifest.get("type") or "")
    given = {**mapping(manifest.get("data")), **mapping(manifest.get("stringData"))}
    is_filled = any(is_marked(manifest, "ssa", value) for value in ("Merge", "IfNotPresent"))
    for key in _KEYS_OF_TYPES.get(kind, ()):
        if key not in given and not is_filled:
            yield ("type",), f"a Secret of type {kind} needs the key {key}; add it, or write type: Opaque"


# What the API server takes, and what then does not do what is meant


def _deadline(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield a deadline that the controller misses: it looks every 10 seconds (kubernetes/website#23622)."""
    path = ("spec", "startingDeadlineSeconds")
    seconds = value_at(manifest, path)
    if isinstance(seconds, int) and not isinstance(seconds, bool) and 0 <= seconds < 10:
        yield (
            path,
            f"{seconds} s are over before the controller looks, so no Job may ever run; write 10 or more",
        )


_EXPRESSION = re.compile(r"[()\[\]|^$\\]|[.*+?][*+?]|\.\*")


def _expressions(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield regular expressions that are taken letter for letter: kubernetes/ingress-nginx#10200, #9967."""
    for number, rule in objects_in(value_at(manifest, "spec.rules")):
        for place, entry in objects_in(value_at(rule, "http.paths")):
            path, kind = str(entry.get("path") or ""), entry.get("pathType")
            if kind in ("Prefix", "Exact") and _EXPRESSION.search(path) and not is_open(path):
                yield (
                    ("spec", "rules", number, "http", "paths", place, "pathType"),
                    f"{kind} takes the regular expression {path} letter for letter, and ingress-nginx "
                    "refuses the whole Ingress; write ImplementationSpecific",
                )


def _address(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield an address that one cluster gave: another one has it already, or has none of its range."""
    address = value_at(manifest, "spec.clusterIP")
    if isinstance(address, str) and address not in ("", "None") and not is_open(address):
        yield (
            ("spec", "clusterIP"),
            f"{address} is refused where a Service has it already, or where it is not of the cluster's "
            "range; remove it",
        )


_Rule = Callable[[Mapping[str, Any]], Iterator[Fault]]
_RULES: Mapping[tuple[str, str], tuple[_Rule, ...]] = {
    **{kind: (of_pod(path),) for kind, path in PODS.items()},
    **{("apps", kind): (of_pod(PODS["apps", kind]), _selector) for kind in WORKLOADS},
    ("apps", "Deployment"): (of_pod(PODS["apps", "Deployment"]), _selector, _rolling, _always),
    ("autoscaling", "HorizontalPodAutoscaler"): (_autoscaler,),
    ("networking.k8s.io", "NetworkPolicy"): (_peers,),
    ("networking.k8s.io", "Ingress"): (_hosts, _paths),
    ("batch", "Job"): (of_pod(PODS["batch", "Job"]), _job(PODS["batch", "Job"])),
    ("batch", "CronJob"): (of_pod(PODS["batch", "CronJob"]), _job(PODS["batch", "CronJob"]), _cron),
    ("", "Service"): (_service,),
    ("", "PersistentVolumeClaim"): (_claim,),
    ("", "ConfigMap"): (_keys, _twice),
    ("", "Secret"): (_keys, _type),
    ("policy", "PodDisruptionBudget"): (_budget,),
    **OF_CLUSTERS,
    **OF_FLUX,
}
_NOTES: Mapping[tuple[str, str], tuple[_Rule, ...]] = {
    ("batch", "CronJob"): (_deadline,),
    ("networking.k8s.io", "Ingress"): (_expressions,),
    ("", "Service"): (_address,),
}
