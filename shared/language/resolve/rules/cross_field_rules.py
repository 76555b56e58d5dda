"""Rules over several fields: of networks, of lists, and between clusters. All are checked offline.

Sources, below learn.microsoft.com/azure/aks: concepts-network-ip-address-planning (ranges that AKS reserves,
the size of the service range, the DNS service's address), configure-dual-stack (families); and the naming
rules of aka.ms/aks-naming-rules.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from shared.language.desired import Desired
from shared.language.model.base import twice
from shared.language.model.cluster.flux import Flux
from shared.language.model.cluster.flux_source import BUCKET, GIT, MAIN, FluxSource, seconds_of
from shared.language.model.cluster.kustomization import Kustomization
from shared.language.model.cluster.network import NetworkProfile
from shared.language.model.cluster.spec import ClusterSpec, ExistingSpec
from shared.language.resolve.problems import Path
from shared.language.resolve.rules.access_rules import zone_of_another_region
from shared.language.resolve.rules.aks_rules import broken_rules
from shared.language.resolve.rules.common_rules import attached_findings, broken_references, unknown_fields
from shared.language.resolve.rules.refusal import (
    DNS,
    PODS,
    SERVICES,
    Finding,
    completed,
    pod_ranges,
    service_ranges,
)

# What Flux as Microsoft's extension cannot do, and where it is the only way.
#
# What a configuration can carry is in azure-mgmt-kubernetesconfiguration-fluxconfigurations (2025-04-01).
# On AKS Automatic, the policy aks-managed-protect-system-namespaces lets nobody write to
# flux-system but the extension's own agents (github.com/Azure/AKS/issues/5645).

_INSTEAD = "remove it, or write install: components"
_LONGEST_NAME = 63
"""Flux labels what a Kustomization applies with its name, and a label has so many characters."""
_NOT_CARRIED = (
    *("deletionPolicy", "targetNamespace", "serviceAccountName", "healthChecks", "patches", "decryption"),
)
"""The fields of a Kustomization for which ``KustomizationDefinition`` has nothing."""


def impossible_ways(spec: ClusterSpec) -> Iterator[Finding]:
    """Yield what the way in which Flux comes to the cluster cannot do."""
    if not spec.flux.is_extension:
        if spec.sku.automatic:
            automatic = "AKS Automatic lets only its own extension write to flux-system"
            yield ("flux", "install"), f"{automatic} (Azure/AKS#5645); write install: extension"
        return
    yield from _of_cluster(spec)
    yield from _of_sources(spec.flux)
    for kustomization in spec.flux.kustomizations:
        yield from _of_kustomization(kustomization, spec.flux)


def _of_cluster(spec: ClusterSpec) -> Iterator[Finding]:
    nobody = "with install: extension, Roadstead applies nothing in the cluster itself"
    for secret in spec.bootstrap_secrets:
        yield ("bootstrapSecrets", secret.name), f"{nobody}, and so no Secret; {_INSTEAD}"
    if spec.flux.workload_identity is not None:
        settings = (
            "workloadIdentity.enable and workloadIdentity.azureClientId of extension.configurationSettings"
        )
        yield ("flux", "workloadIdentity"), f"the extension has settings of its own for it: write {settings}"
    if spec.flux.events is not None:
        yield ("flux", "events"), f"{nobody}, and so no Provider and Alert; {_INSTEAD}"


def _of_sources(flux: Flux) -> Iterator[Finding]:
    for field, message in _of_source(flux.main):
        yield ("flux", field), message
    for source in flux.sources:
        place: Path = ("flux", "sources", source.name)
        for field, message in _of_source(source):
            yield (*place, field), message
        yield from _whole_seconds(source, ("interval",), place)


def _of_source(source: FluxSource) -> Iterator[tuple[str, str]]:
    if source.ignore is not None:
        yield "ignore", _lacks("a source", "ignore")
    if source.kind == GIT and source.service_account_name is not None:
        yield "serviceAccountName", _lacks("a git repository", "serviceAccountName")
    if source.kind != BUCKET:
        return
    if source.prefix is not None:
        yield "prefix", _lacks("a container", "prefix")
    if source.service_account_name is not None:
        yield "serviceAccountName", _lacks("a container", "serviceAccountName")
    if source.provider == "azure" and source.secret_ref is None:
        yield "provider", _lacks("a container", "workload identity", "name a Secret with secretRef")


def _of_kustomization(kustomization: Kustomization, flux: Flux) -> Iterator[Finding]:
    place: Path = ("flux", "kustomizations", kustomization.name)
    given = kustomization.model_dump(by_alias=True, exclude_none=True)
    for field in _NOT_CARRIED:
        if given.get(field):
            yield (*place, field), _lacks("a Kustomization", field)
    yield from _whole_seconds(kustomization, ("interval", "retry_interval", "timeout"), place)
    own = kustomization.source or MAIN
    sources: Mapping[str, str] = {MAIN: MAIN} | {
        sibling.name: sibling.source or MAIN for sibling in flux.kustomizations
    }
    for needed in kustomization.depends_on:
        other = sources[needed.name]
        if other != own:
            message = (
                f"{needed.name} applies the source {other}, and Azure lets a Kustomization wait only for"
            )
            yield (*place, "dependsOn"), f"{message} those of its own source, {own}; {_INSTEAD}"
    called = f"{own}-{kustomization.name}"
    if len(called) > _LONGEST_NAME:
        message = f"it is called {called} on the cluster, which has more than {_LONGEST_NAME} characters"
        yield (*place, "name"), f"{message}; choose a shorter name for it or for its source"


def _lacks(what: str, field: str, instead: str = _INSTEAD) -> str:
    return f"Azure's configuration of {what} has no {field}; {instead}"


def _whole_seconds(model: Any, fields: tuple[str, ...], place: Path) -> Iterator[Finding]:
    for field in fields:
        duration = getattr(model, field)
        seconds = seconds_of(duration) if duration is not None else None
        if seconds is not None and (seconds < 1 or seconds.denominator != 1):
            name = "retryInterval" if field == "retry_interval" else field
            yield (*place, name), f"Azure's configuration takes whole seconds, got {duration}"


_RESERVED = tuple(
    ipaddress.ip_network(text)
    for text in ("169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16", "192.0.2.0/24")
)
_NEVER_OF_A_NETWORK = tuple(
    ipaddress.ip_network(text)
    for text in ("127.0.0.0/8", "168.63.129.16/32", "224.0.0.0/4", "255.255.255.255/32")
)
"""What serviceCidr cannot have, as no virtual network can (virtual-networks-faq; AKS release 2023-10-01)."""
_LARGEST_SERVICE_RANGE = {4: 12, 6: 108}
_LONGEST_GROUP = 80


def findings(spec: ClusterSpec, *, adopted: bool = False) -> Iterator[Finding]:
    """Yield the violations in a spec whose fields are all valid by themselves."""
    if isinstance(spec, ExistingSpec):
        yield from attached_findings(spec)
        return
    network = spec.network_profile or NetworkProfile()
    yield from _of_network(network, network if adopted else completed(spec).network_profile)
    yield from broken_rules(spec, adopted=adopted)
    yield from unknown_fields(spec.drift)
    if spec.sleep is not None and spec.sleep.holidays and not spec.sleep.schedules:
        wanted = "a schedule, which says their time zone and when the cluster starts again"
        yield ("sleep", "holidays"), f"need {wanted}; add sleep.schedules"
    yield from broken_references(spec)
    yield from impossible_ways(spec)
    for pool in spec.node_pools:
        for field, values in (
            ("availabilityZones", pool.availability_zones),
            ("nodeTaints", pool.node_taints),
        ):
            again = twice(values)
            if again is not None:
                yield ("nodePools", pool.name, field), f"has {again} twice; keep one"


def findings_of_place(cluster: Desired) -> Iterator[Finding]:
    """Yield the violations that the name, the group or the region of a cluster decides."""
    _, resource_group, location, _, nodes, _, _, _, access = cluster.footprint
    zone = zone_of_another_region(access, location)
    if zone is not None:
        message = (
            "{zone} is no name for a zone of {region}; choose privatelink.{region}.azmk8s.io, or "
            "private.{region}.azmk8s.io with enableVnetIntegration, or a zone below one of them "
            "(private-clusters)"
        )
        yield ("apiServerAccessProfile", "privateDNSZone"), message.format(**zone)
    group = f"MC_{resource_group}_{cluster.name}_{location}"
    if cluster.adopt or nodes is not None or len(group) <= _LONGEST_GROUP:
        return
    message = (
        f"without nodeResourceGroup, AKS calls that group {group}: {len(group)} characters, and it may have "
        f"{_LONGEST_GROUP}; add nodeResourceGroup with a shorter name"
    )
    yield ("resourceGroup",), message


def _of_network(profile: NetworkProfile, whole: NetworkProfile) -> Iterator[Finding]:
    """Yield the violations in the ranges as git writes them; ``whole`` has those that AKS chooses too."""
    written = {
        "pods": "podCidrs" if profile.pod_cidrs else "podCidr",
        "services": "serviceCidrs" if profile.service_cidrs else "serviceCidr",
    }
    pods, services = pod_ranges(profile), service_ranges(profile)
    if not pods:  # what AKS chooses contradicts what git has of the services
        written["pods"] = written["services"]
    if not profile.dns_service_ip:
        written["dnsServiceIP"] = written["services"]
    ranges = _network(pods, services, profile.ip_families or ())
    between = _between(pod_ranges(whole), service_ranges(whole), whole.dns_service_ip or "")
    for field, message in (*ranges, *between):
        yield ("networkProfile", written.get(field, field)), message


@lru_cache(maxsize=1024)
def _network(
    pods: tuple[str, ...], services: tuple[str, ...], families: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the field and the message of each violation in a cluster's ranges."""
    violations: list[tuple[str, str]] = []
    for field, cidrs in (("pods", pods), ("services", services)):
        networks = [ipaddress.ip_network(cidr) for cidr in cidrs]
        violations += [(field, message) for network in networks for message in _range(field, network)]
        wanted = [int(family.removeprefix("IPv")) for family in families] or [4]
        if networks and [network.version for network in networks] != wanted:
            violations.append((field, _family_message(cidrs, families)))
    return tuple(violations)


@lru_cache(maxsize=1024)
def _between(pods: tuple[str, ...], services: tuple[str, ...], dns: str) -> tuple[tuple[str, str], ...]:
    """Return the field and the message of each violation between the ranges, and of the DNS service."""
    violations = [("pods", message) for message in _overlaps(services, pods)]
    if dns and services:
        violations += [("dnsServiceIP", message) for message in _dns(dns, services)]
    return tuple(violations)


def _overlaps(services: tuple[str, ...], pods: tuple[str, ...]) -> Iterator[str]:
    for service in map(ipaddress.ip_network, services):
        for pod in map(ipaddress.ip_network, pods):
            if service.version == pod.version and service.overlaps(pod):
                yield (
                    f"the pods' range {_shown(pod, PODS)} overlaps the services' range "
                    f"{_shown(service, SERVICES)}; they must be apart"
                )


def _shown(value: object, default: str) -> str:
    return f"{value} (AKS's default)" if str(value) == default else str(value)


def _range(field: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> Iterator[str]:
    overlaps = (
        reserved
        for reserved in _RESERVED
        if reserved.version == network.version and reserved.overlaps(network)
    )
    reserved = next(overlaps, None)
    if reserved is not None:
        yield f"{network} overlaps {reserved}, which AKS reserves; choose another range"
    if field == "services":
        yield from _of_services(network)


def _of_services(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> Iterator[str]:
    for taken in _NEVER_OF_A_NETWORK:
        if taken.version == network.version and taken.overlaps(network):
            yield f"{network} overlaps {taken}, which no network of Azure can have; choose a private range"
    largest = _LARGEST_SERVICE_RANGE[network.version]
    if network.prefixlen < largest:
        yield f"{network} is too large; Azure allows /{largest} and smaller for services"


def _family_message(cidrs: tuple[str, ...], families: tuple[str, ...]) -> str:
    given = ", ".join(cidrs)
    if not families:
        return (
            f"must be one IPv4 network, got {given}; ipFamilies: [IPv4, IPv6] makes a cluster with both kinds"
        )
    return f"must have one network of each of ipFamilies ({', '.join(families)}), in this order, got {given}"


def _dns(dns: str, services: tuple[str, ...]) -> Iterator[str]:
    address = ipaddress.ip_address(dns)
    networks = [ipaddress.ip_network(service) for service in services]
    network = next((network for network in networks if address in network), None)
    if network is None:
        ranges = ", ".join(_shown(service, SERVICES) for service in services)
        yield (
            f"{_shown(dns, DNS)} must lie in serviceCidr {ranges}; write dnsServiceIP, such as "
            f"{networks[0].network_address + 10}"
        )
    elif int(address) - int(network.network_address) < 2:
        yield (
            f"{dns} cannot be the DNS service: the first address of {network} is that of the Kubernetes "
            f"API; choose a later one, such as {network.network_address + 10}"
        )
    elif network.version == 4 and address == network.broadcast_address:
        yield f"{dns} is the broadcast address of {network}; choose an earlier one"


def dns_prefix(name: str, written: str | None) -> str:
    """Return the DNS prefix of a cluster: AKS makes one of its name where the manifest has none."""
    return written or name[:54].rstrip("-")
