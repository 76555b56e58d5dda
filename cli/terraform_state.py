"""A state of Terraform: which AKS clusters it manages, and at which addresses.

Of a state, only addresses and ids are read: its attributes have passwords and kubeconfigs. The form is
version 4, which Terraform writes since 0.12, and OpenTofu: hashicorp/terraform,
internal/states/statefile/version4.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cli.errors import CommandError, UsageError

VERSION = 4
_CLUSTER = re.compile(
    r"(?i)(?P<cluster>/subscriptions/(?P<subscription>[0-9a-f-]{36})/resourcegroups/[^/]+"
    r"/providers/microsoft\.containerservice/managedclusters/[^/]+)(?P<below>/.*)?"
)
_OURS = re.compile(r"(?i)/(agentpools|maintenanceconfigurations)/[^/]+")
"""What of a cluster its manifest has too; azurerm_kubernetes_cluster_node_pool has the id of a pool."""


class _Instance(BaseModel):
    model_config = ConfigDict(strict=True)

    index_key: int | str | None = None
    deposed: str = ""
    attributes: Annotated[dict[str, Any] | None, Field(repr=False)] = None


class _Resource(BaseModel):
    model_config = ConfigDict(strict=True)

    module: str = ""
    mode: str
    type: str
    name: str
    instances: list[_Instance]


class _State(BaseModel):
    model_config = ConfigDict(strict=True)

    version: int
    resources: list[_Resource]


@dataclass(frozen=True)
class TerraformCluster:
    """A cluster of a state, with the addresses of what its manifest has, and of what only names it."""

    subscription: str
    taken: tuple[str, ...]
    others: tuple[str, ...]


def read_state(path: Path) -> Mapping[str, TerraformCluster]:
    """Return the clusters of a state by their ARM ids in lower case; raise UsageError for what is none."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON; {_WRITE}") from error
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise UsageError(f"{path} is no state of Terraform of version {VERSION}; {_WRITE}")
    try:
        state = _State.model_validate(document)
    except ValidationError as error:
        at = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        raise UsageError(f"{path} is no state of Terraform: {at} has another form; {_WRITE}") from None
    found = dict(_clusters(state))
    if not found:
        raise CommandError(f"{path} has no AKS cluster: no resource in it has the id of one")
    return found


_WRITE = "write it with `terraform state pull > state.json`"


def _clusters(state: _State) -> Iterator[tuple[str, TerraformCluster]]:
    instances = [
        (_address(resource, instance), instance.attributes or {})
        for resource in state.resources
        if resource.mode == "managed"
        for instance in resource.instances
        if not instance.deposed
    ]
    taken: dict[str, list[str]] = {}
    subscriptions: dict[str, str] = {}
    for address, attributes in instances:
        match = _CLUSTER.fullmatch(str(attributes.get("id") or ""))
        if match is None or (match["below"] and not _OURS.fullmatch(match["below"])):
            continue
        cluster = match["cluster"].lower()
        taken.setdefault(cluster, []).append(address)
        if not match["below"]:
            subscriptions[cluster] = match["subscription"].lower()
    for cluster, subscription in subscriptions.items():
        others = [
            address
            for address, attributes in instances
            if address not in taken[cluster] and any(_names(attributes, cluster))
        ]
        yield cluster, TerraformCluster(subscription, tuple(taken[cluster]), tuple(others))


def _names(value: Any, cluster: str) -> Iterator[bool]:
    """Yield True for each text that is the id of a cluster, or of something below it."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _names(inner, cluster)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner, cluster)
    elif isinstance(value, str) and f"{value.lower()}/".startswith(f"{cluster}/"):
        yield True


def _address(resource: _Resource, instance: _Instance) -> str:
    """Return the address of an instance, as ``terraform state rm`` takes it."""
    key = "" if instance.index_key is None else f"[{json.dumps(instance.index_key)}]"
    return ".".join(filter(None, (resource.module, resource.type, f"{resource.name}{key}")))
