"""What no pod may have, in whichever kind of workload it is.

Source: ``pkg/apis/core/validation/validation.go`` of Kubernetes, and what the kubelet refuses always.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from shared.language.resolve.problems import Path
from shared.platform.changes.comparison import quantity
from shared.platform.changes.objects import is_open, items, mapping, mapping_at, objects_in, value_at
from shared.platform.rules.finding import lacks, names_in
from shared.platform.rules.names import is_label, label_faults
from shared.platform.schemas.fields import Fault

_PORT_NAME = re.compile(r"(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_PORT_NAME = 15
_IMAGE = re.compile(
    r"([A-Za-z0-9][-A-Za-z0-9.]*(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
    r"(:[\w][\w.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,})?"
)
"""A reference as github.com/distribution/reference ``regexp.go`` has it."""
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def of_pod(path: tuple[str, ...]) -> Callable[[Mapping[str, Any]], Iterator[Fault]]:
    """Return the rule of a kind that has the spec of a pod at ``path``."""

    def rule(manifest: Mapping[str, Any]) -> Iterator[Fault]:
        spec = mapping_at(manifest, path)
        templates = value_at(manifest, "spec.volumeClaimTemplates")
        claims = names_in([mapping(claim).get("metadata", claim) for claim in items(templates)] or templates)
        volumes = names_in(spec.get("volumes")) | claims
        if path[:-1]:
            where = (*path[:-1], "metadata")
            given = mapping_at(manifest, (*where, "labels"))
            texts = {key: value for key, value in given.items() if isinstance(value, str)}
            yield from label_faults({"labels": texts}, where)
        if spec.get("containers") == [] or lacks(manifest, ".".join(path)):
            yield (*path, "containers"), "a pod needs at least one container; add it"
        yield from _placing(spec, path)
        names: set[str] = set()
        for field in ("initContainers", "containers"):
            for number, container in objects_in(spec.get(field)):
                place: Path = (*path, field, number)
                yield from _container(container, place, volumes)
                yield from _running(container, spec, place, runs_before=field == "initContainers")
                name = container.get("name")
                if isinstance(name, str) and name in names and not is_open(name):
                    yield (*place, "name"), f"two containers are called {name}"
                names.add(str(name))
        seen: set[str] = set()
        for number, volume in objects_in(spec.get("volumes")):
            name = str(volume.get("name") or "")
            if name and name in seen:
                yield (*path, "volumes", number, "name"), f"two volumes are called {name}"
            seen.add(name)
            sources = sorted(
                key
                for key, value in volume.items()
                if key != "name" and not (value is None or is_open(value))
            )
            if len(sources) > 1:
                message = f"has {' and '.join(map(str, sources))}; keep one (a patch removes one with null)"
                yield (*path, "volumes", number), message

    return rule


def _container(container: Mapping[str, Any], place: Path, volumes: Collection[str]) -> Iterator[Fault]:
    name = container.get("name")
    if isinstance(name, str) and name and not is_open(name) and not is_label(name):
        yield (
            (*place, "name"),
            f"{name} must be at most 63 lowercase letters, digits and hyphens, with a letter or digit at "
            "both ends",
        )
    image = container.get("image")
    if not image:
        yield place, "image is missing; add it"
    elif isinstance(image, str) and not (is_open(image) or _IMAGE.fullmatch(image)):
        yield (*place, "image"), f"{image} is no name of an image, so the kubelet starts no container of it"
    for number, port in objects_in(container.get("ports")):
        yield from port_name(port, "name", (*place, "ports", number))
    ports = names_in(container.get("ports"))
    for probe in _PROBES:
        for action in ("httpGet", "tcpSocket"):
            asked, where = mapping_at(container, (probe, action)), (*place, probe, action)
            yield from port_name(asked, "port", where) or _no_port(asked.get("port"), ports, (*where, "port"))
    for field, keys in (
        ("env", ("name",)),
        ("ports", ("containerPort", "protocol")),
        ("volumeMounts", ("mountPath",)),
    ):
        yield from once(container.get(field), keys, (*place, field))
    for number, variable in objects_in(container.get("env")):
        if variable.get("value") and variable.get("valueFrom"):
            yield (*place, "env", number, "valueFrom"), "does not go with value; keep one of the two"
    for number, mount in objects_in(container.get("volumeMounts")):
        wanted = mount.get("name")
        if isinstance(wanted, str) and wanted not in volumes and not any(map(is_open, (wanted, *volumes))):
            yield (*place, "volumeMounts", number, "name"), f"there is no volume {wanted} in this pod"
    yield from _memory(container, place)
    limits, requests = (mapping_at(container, ("resources", field)) for field in ("limits", "requests"))
    for resource in limits.keys() & requests.keys():
        most, least = quantity(str(limits[resource])), quantity(str(requests[resource]))
        if most is not None and least is not None and least > most:
            yield (
                (*place, "resources", "requests", resource),
                f"must be at most the limit, {limits[resource]}, got {requests[resource]}",
            )


def _running(
    container: Mapping[str, Any], spec: Mapping[str, Any], place: Path, *, runs_before: bool
) -> Iterator[Fault]:
    """Yield what does not go with how a container runs: its probes, ports of the node, and its rights."""
    security = mapping(container.get("securityContext"))
    if security.get("privileged") is True and security.get("allowPrivilegeEscalation") is False:
        path = (*place, "securityContext", "allowPrivilegeEscalation")
        yield path, "must not be false where privileged is true"
    for number, port in objects_in(container.get("ports") if spec.get("hostNetwork") is True else None):
        same = (None, 0, port.get("containerPort"))
        if port.get("hostPort") not in same and not any(map(is_open, (port.get("hostPort"), *same))):
            path = (*place, "ports", number, "hostPort")
            yield path, "must be containerPort, because the pod has the network of its node"
    for name in _PROBES:
        probe, policy = container.get(name), container.get("restartPolicy")
        if not isinstance(probe, Mapping):
            continue
        if runs_before and policy != "Always" and not is_open(policy):
            yield (*place, name), "an init container has no probes, except with restartPolicy: Always"
        actions = [action for action in _ACTIONS if probe.get(action) is not None]
        if len(actions) != 1:
            wanted = f"must have one of {', '.join(_ACTIONS)}"
            yield (*place, name), f"{wanted}, and has {' and '.join(actions) or 'none'}"
        successes = probe.get("successThreshold")
        if name != "readinessProbe" and isinstance(successes, int) and successes not in (0, 1):
            yield (*place, name, "successThreshold"), f"must be 1 but of a readinessProbe, got {successes}"


_ACTIONS = ("exec", "httpGet", "tcpSocket", "grpc")


def _memory(container: Mapping[str, Any], place: Path) -> Iterator[Fault]:
    """Yield a limit of memory that no container starts with: 512m is half a byte."""
    given = mapping_at(container, "resources.limits").get("memory")
    amount = quantity(str(given)) if given and not is_open(given) else None
    if amount is not None and 0 < amount < _LEAST_MEMORY:
        where = (*place, "resources", "limits", "memory")
        yield where, f"{given} is less than 1 MiB; Mi and Gi are the units"


_LEAST_MEMORY = 1 << 20


def _placing(spec: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    """Yield what ``ValidateTolerations`` refuses beyond the values of fields."""
    for number, toleration in objects_in(spec.get("tolerations")):
        place: Path = (*path, "tolerations", number)
        if toleration.get("operator") == "Exists" and toleration.get("value"):
            yield (*place, "value"), "does not go with operator Exists; remove one of the two"


def once(value: Any, keys: tuple[str, ...], place: Path) -> Iterator[Fault]:
    """Yield the entries of a list with the keys of one before them, which server-side apply refuses.

    Source: structured-merge-diff ``typed/validate.go``; fluxcd/kustomize-controller#457.
    """
    seen: set[tuple[Any, ...]] = set()
    for number, entry in objects_in(value):
        key = tuple(str(entry.get(name, _PROTOCOL if name == "protocol" else "")) for name in keys)
        if key in seen and not any(map(is_open, key)):
            why = "which Flux's server-side apply refuses; keep one"
            yield (*place, number), f"the {keys[0]} {key[0]} is here twice, {why}"
        seen.add(key)


_PROTOCOL = "TCP"


def port_name(port: Any, field: str, place: Path) -> Sequence[Fault]:
    """Return a fault where a text is no name of a port (``IsValidPortName``): "8080" is neither."""
    name, path = mapping(port).get(field), (*place, field)
    if not isinstance(name, str) or not name or is_open(name):
        return ()
    if name.isdecimal():
        return [(path, f"is the text {name}, and so the name of a port; write it without quotes")]
    if len(name) <= _LONGEST_PORT_NAME and _PORT_NAME.fullmatch(name):
        return ()
    message = (
        f"the name of a port, {name}, must be at most {_LONGEST_PORT_NAME} lowercase letters, digits "
        "and single hyphens, with a letter, and a letter or digit at both ends"
    )
    return [(path, message)]


def _no_port(name: Any, ports: Collection[Any], path: Path) -> Iterator[Fault]:
    """Yield a fault where a probe names a port that its container lacks (pkg/probe ResolveContainerPort)."""
    if isinstance(name, str) and name and name not in ports and not any(map(is_open, (name, *ports))):
        yield path, f"no port of this container is called {name}, so the probe always fails; name one so"
