"""What is wrong on a running cluster, as its objects show it. Pure.

Flux writes its results as conditions of its objects (fluxcd.io/flux/components, "Status" of each kind), and
the node controller the condition ``Ready`` of a node (kubernetes.io/docs/reference/node/node-status). What is
at work is no fault before ``PATIENCE`` has passed: a new node takes minutes, and so does a large release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.kubernetes.field_ownership import data_changed_by_others, our_entry, spec_writers
from shared.kubernetes.flux_instance import INSTANCE
from shared.kubernetes.flux_objects import (
    CREDENTIALS,
    EXTENSION_NAME,
    FACTS,
    NAMESPACE,
    SECRET,
    is_ours,
    ref_of,
)
from shared.kubernetes.flux_readiness import (
    NO_ATTEMPT,
    WAITS_FOR_ANOTHER,
    Attempt,
    FluxFailure,
    Progressing,
    Readiness,
    Suspended,
    message_of,
    ready_condition,
    reconciled,
)
from shared.masking import cut
from shared.resource_ids import ObjectRef
from shared.sentences import some_of

# Whether a Deployment runs its newest version, by the rules of ``kubectl rollout status``.
#
# Source: kubernetes/kubectl ``pkg/polymorphichelpers/rollout_status.go``.


@dataclass(frozen=True)
class DeploymentRollout:
    """A Deployment that does not run its newest version yet; ``failed``: it exceeded its deadline."""

    name: str
    message: str
    failed: bool = False
    refused: str = ""

    def __str__(self) -> str:
        return f"the Deployment {self.name}: {self.message}"


def unfinished(deployments: Sequence[Json]) -> list[DeploymentRollout]:
    """Return those of the Deployments whose newest version does not run yet; failed ones come first."""
    found = [rollout for rollout in map(_rollout, deployments) if rollout is not None]
    return sorted(found, key=lambda rollout: (not rollout.failed, rollout.name))


def _rollout(deployment: Json) -> DeploymentRollout | None:
    metadata, status = deployment["metadata"], deployment.get("status") or {}
    name = str(metadata["name"])
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        return DeploymentRollout(name, "Kubernetes has not seen its newest version yet")
    exceeded, refused = _deadline_exceeded(status), _refused_pods(status)
    if exceeded is not None:
        return DeploymentRollout(name, "; ".join(filter(None, (exceeded, refused))), True, refused)
    wanted = (deployment.get("spec") or {}).get("replicas", 1)
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    if updated < wanted:
        message = f"{updated} of {wanted} replicas are updated"
        return DeploymentRollout(name, ": ".join(filter(None, (message, refused))), refused=refused)
    if status.get("replicas", 0) > updated:
        return DeploymentRollout(name, f"{status['replicas'] - updated} old replicas still run")
    if available < updated:
        return DeploymentRollout(name, f"{available} of {updated} updated replicas are available")
    return None


def _deadline_exceeded(status: Json) -> str | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Progressing" and condition.get("reason") == "ProgressDeadlineExceeded":
            return f"ProgressDeadlineExceeded: {condition.get('message', '')}".strip(": ")
    return None


def _refused_pods(status: Json) -> str:
    """Return why the API server refuses the pods, such as a quota or a policy of pods; "" where it does not.

    Source: kubernetes ``pkg/controller/replicaset/replica_set_utils.go``.
    """
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("status")) == ("ReplicaFailure", "True"):
            said = " ".join(str(condition.get("message") or "").split())
            return f"{condition.get('reason') or 'ReplicaFailure'}: {cut(said, _MOST_OF_REFUSAL, '...')}"
    return ""


_MOST_OF_REFUSAL = 500
"""So many characters are shown of what is said of pods that are refused."""
PATIENCE = timedelta(minutes=10)
_SOURCES = ("GitRepository", "OCIRepository", "Bucket")
FLUX_KINDS = (*_SOURCES, "Kustomization", "HelmRelease")
"""The kinds of Flux whose objects say whether a cluster follows its sources, sources first."""
MISSING, CHANGED, SUSPENDED = "ObjectMissing", "ObjectChanged", "Suspended"
"""Why an object that Roadstead applied is not as it was applied; a job may apply it again."""
_DEFINITION = "CustomResourceDefinition"
_PLURALS = frozenset({"gitrepositories", "ocirepositories", "buckets", "kustomizations", "helmreleases"})
"""What the definitions of ``FLUX_KINDS`` are called."""
_ROOT = frozenset({NAMESPACE, INSTANCE.name, EXTENSION_NAME})


@dataclass(frozen=True)
class Fault:
    """An object that is not as it should be: why in one word, and a sentence without its subject."""

    ref: ObjectRef
    reason: str
    message: str
    attempt: Attempt = NO_ATTEMPT
    since: datetime | None = None

    def __str__(self) -> str:
        return f"the {self.ref}: {self.message}"


def _of_root(ref: ObjectRef) -> bool:
    """Return whether nothing of git is applied without it: the root's objects, and where they live."""
    if ref.kind == _DEFINITION:
        return ref.name.partition(".")[0] in _PLURALS
    return ref.name in _ROOT and ref.namespace in ("", NAMESPACE)


def _of_platform(ref: ObjectRef) -> bool:
    return ref.namespace in ("", NAMESPACE)


def _anywhere(_: ObjectRef) -> bool:
    return True


@dataclass(frozen=True)
class Rank:
    """Faults that hurt alike: of which kinds, causes first, where, and for which reasons; () are all."""

    kinds: tuple[str, ...]
    where: Callable[[ObjectRef], bool] = _anywhere
    reasons: tuple[str, ...] = ()


_NEEDED = (
    *(_DEFINITION, "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("Secret", "Service"),
)
_INSTALLERS = ("Extension", "FluxInstance")
_SYNC = ("FluxConfiguration", *FLUX_KINDS)
RANKS = (
    # Nothing of Flux is left, and what it applied may be gone with it.
    Rank(("Namespace", _DEFINITION), _of_root, (MISSING,)),
    Rank((*_INSTALLERS, "FluxConfiguration", "Kustomization", *_SOURCES), _of_root, (MISSING,)),
    # The cluster does not follow git, or another one.
    Rank((*_INSTALLERS, "Deployment"), _of_platform),
    Rank(("Secret", *_SYNC), _of_root, (MISSING, CHANGED, SUSPENDED)),
    # The platform: first what it needs. Then the same of teams.
    Rank(_NEEDED, _of_platform),
    Rank(_SYNC, _of_root),
    Rank(_SYNC, _of_platform),
    Rank(_NEEDED),
    Rank(_SYNC),
)
"""Which faults hurt most, in this order; a fault has the first rank that fits, and comes last without."""


def kinds_of_flux(components: Sequence[Json]) -> Iterator[tuple[str, str]]:
    """Yield the apiVersion and kind of ``FLUX_KINDS`` that the components define, in their order."""
    defined: Mapping[str, Json] = {
        component["spec"]["names"]["kind"]: component["spec"]
        for component in components
        if component["kind"] == _DEFINITION
    }
    for kind in FLUX_KINDS:
        if kind in defined:
            spec = defined[kind]
            stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
            yield f"{spec['group']}/{stored}", kind


def missing(ref: ObjectRef) -> Fault:
    """Return the fault of an object that Roadstead applied and the cluster lacks."""
    return Fault(ref, MISSING, "Roadstead applied it, and it no longer exists")


def changed(ref: ObjectRef, what: str = "") -> Fault:
    """Return the fault of an object that is not as Roadstead applied it."""
    return Fault(ref, CHANGED, f"somebody changed what Roadstead applied{what and f': {what}'}")


def sync_faults(wanted: Sequence[Json], live: Mapping[ObjectRef, Json]) -> Iterator[Fault]:
    """Yield what is wrong with the sync objects: each selects what the manifest asks for, and runs."""
    for manifest in wanted:
        ref = ref_of(manifest)
        spec = (live.get(ref) or {}).get("spec") or {}
        if ref not in live:
            yield missing(ref)
            continue
        others = [key for key, value in manifest["spec"].items() if spec.get(key) != value]
        if others:
            fields = ", ".join(f"spec.{key}" for key in others)
            yield changed(ref, f"{fields}{_by(live[ref], others)}")
        if spec.get("suspend"):
            yield Fault(ref, SUSPENDED, "somebody suspended it, so the cluster does not follow git")


def _by(live: Json, fields: Sequence[str]) -> str:
    """Return, in parentheses, which programs set these fields of the spec, and when."""
    found = spec_writers(live, fields)
    named = (f"{name} at {time_of(at):%Y-%m-%d %H:%M} UTC" if at else name for name, at in found)
    return f" ({', '.join(named)})" if found else ""


def uses_credentials(source: Json | None) -> bool:
    """Return whether Roadstead has the GitRepository use a Secret, which it applied too then."""
    entry = our_entry(source) if source else None
    return "f:secretRef" in ((entry or {}).get("fieldsV1") or {}).get("f:spec", {})


def credential_faults(secret: Json | None) -> Iterator[Fault]:
    """Yield what is wrong with the Secret of the git credentials: it is missing, or somebody changed a field.

    No value is compared: those of the app's settings are newer while a token is replaced.
    """
    if secret is None:
        yield missing(SECRET)
        return
    fields = data_changed_by_others(secret, CREDENTIALS)
    if fields:
        yield changed(SECRET, ", ".join(f"data.{name}" for name in sorted(fields)))


def facts_faults(live: Json | None) -> Iterator[Fault]:
    """Yield what is wrong with the ConfigMap of the facts: it is missing, or somebody changed a field."""
    if live is None:
        yield missing(FACTS)
        return
    fields = data_changed_by_others(live, (live.get("data") or {}).keys())
    if fields or not is_ours(live):
        yield changed(FACTS, ", ".join(f"data.{name}" for name in sorted(fields)))


def deployment_faults(deployments: Sequence[Json], now: datetime) -> Iterator[Fault]:
    """Yield the Deployments of Flux that do not run their newest version."""
    settled = [deployment for deployment in deployments if now - changed_at(deployment) > PATIENCE]
    named = {document["metadata"]["name"]: ref_of(document) for document in settled}
    for rollout in unfinished(settled):
        yield Fault(named[rollout.name], "NotRunning", rollout.message)


@dataclass(frozen=True)
class ObjectReport:
    """An object of Flux, as its cluster or Azure shows it: how far it is, and since when."""

    ref: ObjectRef
    state: Readiness
    since: datetime


def report_of(live: Json) -> ObjectReport:
    """Return how far an object of Flux on a cluster is."""
    ready, suspended = ready_condition(live), (live.get("spec") or {}).get("suspend")
    seen = ready is not None and ready.get("observedGeneration", 0) >= live["metadata"].get("generation", 0)
    since = time_of((ready or {}).get("lastTransitionTime")) if seen else changed_at(live)
    return ObjectReport(ref_of(live), Suspended() if suspended else reconciled(live), since)


def flux_faults(reports: Iterable[ObjectReport], now: datetime) -> Iterator[Fault]:
    """Yield the objects of Flux that failed, or that take too long; what somebody suspended is at rest."""
    for report in reports:
        late, since = now - report.since > PATIENCE, report.since
        match report.state:
            case FluxFailure(reason, message, attempt) as failure if late or not failure.passes:
                yield Fault(report.ref, reason or "Failed", f"{reason}: {message}", attempt, since)
            case Progressing(message) if late:
                text = f"{message}, since {since:%H:%M} UTC"
                yield Fault(report.ref, "NotReconciled", text, since=since)


def node_faults(nodes: Sequence[Json], now: datetime) -> Iterator[Fault]:
    """Yield the nodes that are not ready."""
    for node in nodes:
        ready = ready_condition(node)
        since = time_of((ready or {}).get("lastTransitionTime") or node["metadata"].get("creationTimestamp"))
        if (ready or {}).get("status") == "True" or now - since <= PATIENCE:
            continue
        why = f": {message_of(ready)}" if ready and ready.get("message") else ""
        message = f"not ready since {since:%Y-%m-%d %H:%M} UTC{why}"
        yield Fault(ref_of(node), "NodeNotReady", message, since=since)


def in_order(faults: Sequence[Fault]) -> list[Fault]:
    """Return the faults with what hurts most first, by ``RANKS``; among equals what is missing."""

    def place(fault: Fault) -> tuple[bool, tuple[int, int], bool, str]:
        waits = fault.reason == WAITS_FOR_ANOTHER
        return waits, _rank(fault), fault.reason != MISSING, str(fault.ref)

    return sorted(faults, key=place)


def _rank(fault: Fault) -> tuple[int, int]:
    """Return the first rank that a fault has, and the place of its kind there."""
    for number, rank in enumerate(RANKS):
        fits = fault.ref.kind in rank.kinds and rank.where(fault.ref)
        if fits and (fault.reason in rank.reasons or not rank.reasons):
            return number, rank.kinds.index(fault.ref.kind)
    return len(RANKS), 0


def changed_at(live: Json) -> datetime:
    """Return when somebody wrote an object last, and not only its status."""
    metadata = live["metadata"]
    written = [
        entry["time"]
        for entry in metadata.get("managedFields") or ()
        if entry.get("time") and not entry.get("subresource")
    ]
    return max(map(time_of, written), default=time_of(metadata.get("creationTimestamp")))


def time_of(text: object) -> datetime:
    """Return a time of Kubernetes; long ago without one."""
    return datetime.fromisoformat(str(text)) if text else datetime(1970, 1, 1, tzinfo=UTC)


# What keeps an object that is being deleted: its finalizers, and what is left in a namespace.
#
# The namespace controller writes into the conditions of a namespace why it does not end yet (kubernetes
# ``pkg/controller/namespace/deletion/status_condition_utils.go``).

LONGEST = 300
"""So many characters of a condition are shown: it may list every kind that is left."""
_OF_KUBERNETES = "kubernetes"
"""The finalizer of every namespace, which Kubernetes takes away when the namespace is empty."""
_CONDITIONS = (
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
)
"""Those that are True while something keeps a namespace, the one that says most first."""


def what_keeps(live: Json) -> str:
    """Return what keeps an object that is being deleted, "" where it does not show it."""
    return "; ".join(_reasons(live))


def _reasons(live: Json) -> Iterator[str]:
    spec = live.get("spec") or {}
    of_namespace = spec.get("finalizers") or () if live.get("kind") == "Namespace" else ()
    finalizers = [*(live["metadata"].get("finalizers") or ()), *of_namespace]
    own = [str(finalizer) for finalizer in finalizers if finalizer != _OF_KUBERNETES]
    if own:
        yield f"it has the finalizer{'s' * (len(own) > 1)} {some_of(own, 3)}"
    if live.get("kind") == "Namespace":
        conditions = (live.get("status") or {}).get("conditions") or ()
        found = {condition["type"]: condition for condition in conditions if condition["status"] == "True"}
        for kind in _CONDITIONS:
            if kind in found:
                yield cut(" ".join(str(found[kind].get("message") or kind).split()), LONGEST, "...")
