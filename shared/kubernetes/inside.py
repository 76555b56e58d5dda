"""What a check counts inside a cluster and names as unhealthy, with the workloads. Pure.

A cluster may have thousands of objects. Of each kind, and of the nodes of each pool, the numbers are stored
and the first ``NAMED`` unhealthy objects, so that what is stored of a cluster stays small.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from shared.frozen import dataclass, field, replace
from shared.json_tree import Json
from shared.kubernetes.flux_objects import ref_of
from shared.kubernetes.flux_readiness import Ready, Suspended, message_of, ready_condition
from shared.kubernetes.health import PATIENCE, Fault, ObjectReport, changed_at, in_order, time_of
from shared.kubernetes.kubeconfig import Certificate
from shared.language.desired import Desired
from shared.masking import cut

# Whether the workloads of a cluster run: Deployments, StatefulSets and DaemonSets. Pure.
#
# Source: the statuses of ``k8s.io/api/apps/v1``, and for a Deployment its conditions ``Available`` and
# ``Progressing`` (kubernetes.io/docs/concepts/workloads/controllers/deployment, "Deployment status"). The
# other two kinds have no such condition, and no time: their numbers count.

API_VERSION = "apps/v1"
DEPLOYMENT = "Deployment"
WORKLOADS = (DEPLOYMENT, "StatefulSet", "DaemonSet")
_BAD = {"Progressing": "ProgressDeadlineExceeded", "Available": "MinimumReplicasUnavailable"}
"""The conditions of a Deployment that are false where it does not run, and the usual reason of each."""


def workload_faults(workloads: Sequence[Json], now: datetime) -> Iterator[Fault]:
    """Yield the workloads that do not run; what somebody changed a moment ago is at work."""
    for live in workloads:
        fault = _of_deployment(live, now) if live["kind"] == DEPLOYMENT else _of_numbers(live)
        if fault is not None and now - changed_at(live) > PATIENCE:
            yield fault


def runs(live: Json) -> bool:
    """Return whether the newest version of a workload is available as often as its spec asks for."""
    status = live.get("status") or {}
    wanted, available = _numbers(live)
    return (
        status.get("observedGeneration", 0) >= live["metadata"].get("generation", 0) and available >= wanted
    )


def _of_deployment(live: Json, now: datetime) -> Fault | None:
    conditions = (live.get("status") or {}).get("conditions") or ()
    found = {
        str(condition.get("type")): condition
        for condition in conditions
        if condition.get("status") == "False"
    }
    for kind, reason in _BAD.items():
        condition = found.get(kind)
        since = time_of((condition or {}).get("lastTransitionTime"))
        if condition is not None and now - since > PATIENCE:
            return Fault(
                ref_of(live), str(condition.get("reason") or reason), message_of(condition), since=since
            )
    return None


def _of_numbers(live: Json) -> Fault | None:
    wanted, available = _numbers(live)
    if available >= wanted:
        return None
    return Fault(ref_of(live), "PodsUnavailable", f"{available} of {wanted} pods are available")


def _numbers(live: Json) -> tuple[int, int]:
    spec, status = live.get("spec") or {}, live.get("status") or {}
    if live["kind"] == "DaemonSet":
        return int(status.get("desiredNumberScheduled", 0)), int(status.get("numberAvailable", 0))
    return int(spec.get("replicas", 1)), int(status.get("availableReplicas", 0))


NAMED = 5
"""So many unhealthy objects of each kind, and of each node pool, are named; the others are counted."""
MESSAGE_LIMIT = 200
VERSIONS = 5
COMPONENT, NODE = "Component", "Node"
"""The kinds of what Roadstead applied of Flux, whatever it is, and of the nodes of one pool."""


@dataclass(frozen=True)
class UnhealthyObject:
    """An object that is not healthy: why in one word and in a sentence, and since when."""

    kind: str
    name: str
    namespace: str
    reason: str
    message: str
    since: datetime


@dataclass(frozen=True)
class Part:
    """The objects of one kind, or the nodes of one pool: how many there are, and how many are ready.

    ``failed`` also counts objects that should be there and are missing. What is neither ready nor suspended
    nor failed is at work. ``pool`` is that of nodes, "" for those of none; ``versions`` are theirs.
    """

    kind: str
    total: int
    ready: int
    failed: int = 0
    suspended: int = 0
    unhealthy: tuple[UnhealthyObject, ...] = ()
    pool: str = ""
    versions: tuple[str, ...] = ()


@dataclass(frozen=True)
class InsideReading:
    """A cluster from inside, as a check read it at a time; ``certificates`` prove its API server.

    ``systems`` has the revision that Flux applied last of each system, by its name: "" for none yet. What is
    not in it was not read.
    """

    at: datetime
    parts: tuple[Part, ...]
    certificates: tuple[Certificate, ...] = ()
    systems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Count:
    """Counts what a check reads ``now``; ``before`` is what the last one read."""

    now: datetime
    before: InsideReading | None = None

    def components(self, total: int, faults: Sequence[Fault]) -> Part:
        """Return what Roadstead applied of Flux and of systems; the faults are in it."""
        return self._with(Part(COMPONENT, total, total - len(faults)), faults)

    def flux(self, kind: str, reports: Sequence[ObjectReport], faults: Iterable[Fault]) -> Part:
        """Return the objects of a kind of Flux; the faults may be those of other kinds too."""
        own = {fault.ref: fault for fault in faults if fault.ref.kind == kind}
        states = [report.state for report in reports if report.ref not in own]
        ready, suspended = (sum(isinstance(state, of) for state in states) for of in (Ready, Suspended))
        return self._with(Part(kind, len(reports), ready, suspended=suspended), [*own.values()])

    def workloads(self, kind: str, objects: Sequence[Json], faults: Sequence[Fault]) -> Part:
        """Return the workloads of a kind; the faults are in them."""
        ready = sum(runs(document) for document in _without(objects, faults))
        return self._with(Part(kind, len(objects), ready), faults)

    def pools(
        self, nodes: Sequence[Json], label: str, renamed: Mapping[str, str], faults: Iterable[Fault]
    ) -> Iterator[Part]:
        """Yield the nodes of each pool, which a label of theirs names, by the names that git has for them."""
        pools: defaultdict[str, list[Json]] = defaultdict(list)
        for node in nodes:
            name = str((node["metadata"].get("labels") or {}).get(label, ""))
            pools[renamed.get(name, name)].append(node)
        faulty = {fault.ref.name: fault for fault in faults}
        for pool, own in sorted(pools.items()):
            versions = {str(_info(node).get("kubeletVersion") or "").removeprefix("v") for node in own}
            failed = [faulty[name] for node in own if (name := node["metadata"]["name"]) in faulty]
            part = Part(NODE, len(own), sum(map(_is_ready, own)), pool=pool)
            yield self._with(replace(part, versions=tuple(sorted(versions - {""}))[:VERSIONS]), failed)

    def _with(self, part: Part, faults: Sequence[Fault]) -> Part:
        known = {
            (unhealthy.kind, unhealthy.namespace, unhealthy.name, unhealthy.reason): unhealthy.since
            for earlier in (self.before.parts if self.before else ())
            for unhealthy in earlier.unhealthy
        }
        named = []
        for fault in in_order(faults)[:NAMED]:
            identity = fault.ref.kind, fault.ref.namespace, fault.ref.name, fault.reason
            since = fault.since or known.get(identity, self.now)
            ref, message = fault.ref, cut(fault.message.removeprefix(f"{fault.reason}: "), MESSAGE_LIMIT)
            named.append(UnhealthyObject(ref.kind, ref.name, ref.namespace, fault.reason, message, since))
        return replace(part, failed=len(faults), unhealthy=tuple(named))


def _without(objects: Sequence[Json], faults: Iterable[Fault]) -> list[Json]:
    failed = {(fault.ref.namespace, fault.ref.name) for fault in faults}
    return [document for document in objects if _place(document["metadata"]) not in failed]


def _place(metadata: Json) -> tuple[str, str]:
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def _info(node: Json) -> Json:
    info: Json = (node.get("status") or {}).get("nodeInfo") or {}
    return info


def _is_ready(live: Json) -> bool:
    return (ready_condition(live) or {}).get("status") == "True"


# The facts of a cluster: what manifests on it, and programs around it, need to know of it. Pure.
#
# They are variables for Flux's ``postBuild.substituteFrom``, so their names are those that Flux accepts
# (fluxcd.io/flux/components/kustomize/kustomizations, "Post build variable substitution"). None is a secret:
# they are the cluster's manifest, and what ARM shows of it to readers.

PREFIX = "cluster_"
_OTHER = re.compile(r"[^A-Za-z0-9]")


def facts_of(desired: Desired, live: Json) -> dict[str, str]:
    """Return the facts of a cluster that Azure shows like this, by their names, without empty ones."""
    properties = live.get("properties") or {}
    issuer = (properties.get("oidcIssuerProfile") or {}).get("issuerURL")
    identity = live.get("identity") or {}
    facts: dict[str, object] = {
        "name": desired.name,
        "environment": desired.environment,
        "class": desired.cluster_class,
        "location": desired.spec.location,
        "subscription_id": desired.spec.subscription_id,
        "tenant_id": identity.get("tenantId") or (properties.get("aadProfile") or {}).get("tenantID"),
        "resource_group": desired.spec.resource_group,
        "node_resource_group": properties.get("nodeResourceGroup"),
        "resource_id": live.get("id"),
        "kubernetes_version": properties.get("currentKubernetesVersion")
        or properties.get("kubernetesVersion"),
        "fqdn": properties.get("fqdn") or properties.get("privateFQDN"),
        "oidc_issuer_url": issuer,
        "identity_principal_id": identity.get("principalId"),
        **dict(_identities(identity, properties)),
        **_labels(desired.labels),
    }
    return {f"{PREFIX}{name}": str(value) for name, value in sorted(facts.items()) if value}


def _identities(identity: Json, properties: Json) -> Iterator[tuple[str, object]]:
    """Yield the client ids of the identities of the control plane, of the kubelets and of the add-ons."""
    assigned = list((identity.get("userAssignedIdentities") or {}).values())
    if len(assigned) == 1:
        yield "identity_client_id", (assigned[0] or {}).get("clientId")
    kubelet = (properties.get("identityProfile") or {}).get("kubeletidentity") or {}
    yield "kubelet_identity_client_id", kubelet.get("clientId")
    for name, addon in (properties.get("addonProfiles") or {}).items():
        yield f"addon_{_variable(name)}_client_id", ((addon or {}).get("identity") or {}).get("clientId")


def _labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels as facts; of those with one name as a variable, none."""
    names = {key: f"label_{_variable(key)}" for key in labels}
    count = Counter(names.values())
    return {name: labels[key] for key, name in names.items() if count[name] == 1}


def _variable(text: str) -> str:
    return _OTHER.sub("_", text)


_OF_AZURE = re.compile(
    rf"{PREFIX}(tenant_id|node_resource_group|resource_id|kubernetes_version|fqdn|oidc_issuer_url"
    r"|identity_principal_id|identity_client_id|kubelet_identity_client_id|addon_\w+_client_id)"
)


def is_of_azure(fact: str) -> bool:
    """Return whether Azure gives a fact, and the manifest of a cluster does not say it."""
    return _OF_AZURE.fullmatch(fact) is not None
