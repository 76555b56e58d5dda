"""The APIs that releases of Kubernetes stop to serve, as the code of the API server declares them. Pure.

An object that Flux applies in such a version is refused from that release on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

AS_OF = "2026-07-24, v0.37.0-beta.0"
"""The commit of ``SOURCE`` that was read: its day, and the newest tag before it."""
SOURCE = (
    "github.com/kubernetes/api: APILifecycleRemoved in zz_generated.prerelease-lifecycle.go of each group"
)
GUIDE = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/"
"""The page for people; it lists what has been removed up to Kubernetes 1.32."""


class RemovedApi(NamedTuple):
    """Kinds in a version of their group, and the first minor of Kubernetes 1 that does not serve them."""

    group: str
    version: str
    kinds: tuple[str, ...]
    minor: int


_POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_MUTATING = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
_FLOWS = ("FlowSchema", "PriorityLevelConfiguration")
_DEVICES = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
REMOVED = (
    RemovedApi("storage.k8s.io", "v1beta1", ("CSIStorageCapacity",), 27),
    RemovedApi("flowcontrol.apiserver.k8s.io", "v1beta2", _FLOWS, 29),
    RemovedApi("admissionregistration.k8s.io", "v1alpha1", _POLICIES, 32),
    RemovedApi("authentication.k8s.io", "v1alpha1", ("SelfSubjectReview",), 32),
    RemovedApi("flowcontrol.apiserver.k8s.io", "v1beta3", _FLOWS, 32),
    RemovedApi("authentication.k8s.io", "v1beta1", ("SelfSubjectReview",), 33),
    RemovedApi("admissionregistration.k8s.io", "v1beta1", _POLICIES, 34),
    RemovedApi("storage.k8s.io", "v1alpha1", ("VolumeAttributesClass",), 35),
    RemovedApi("certificates.k8s.io", "v1alpha1", ("ClusterTrustBundle",), 37),
    RemovedApi("networking.k8s.io", "v1beta1", ("IPAddress", "ServiceCIDR"), 37),
    RemovedApi("storage.k8s.io", "v1beta1", ("VolumeAttributesClass",), 37),
    RemovedApi("admissionregistration.k8s.io", "v1alpha1", _MUTATING, 38),
    RemovedApi("coordination.k8s.io", "v1alpha2", ("LeaseCandidate",), 38),
    RemovedApi("resource.k8s.io", "v1beta1", _DEVICES, 38),
    RemovedApi("coordination.k8s.io", "v1beta1", ("LeaseCandidate",), 39),
    RemovedApi("resource.k8s.io", "v1alpha3", ("DeviceTaintRule",), 39),
    RemovedApi("resource.k8s.io", "v1beta2", _DEVICES, 39),
    RemovedApi("admissionregistration.k8s.io", "v1beta1", _MUTATING, 40),
    RemovedApi("certificates.k8s.io", "v1beta1", ("ClusterTrustBundle", "PodCertificateRequest"), 40),
    RemovedApi("storagemigration.k8s.io", "v1beta1", ("StorageVersionMigration",), 40),
)
"""The removals that ``SOURCE`` declares for the releases that a cluster of today may be upgraded to."""
KNOWN_TO = 40
"""The last minor up to which the table is complete: of later ones ``SOURCE`` declares a part."""


def _entries() -> Iterator[tuple[tuple[str, str, str], int]]:
    for api in REMOVED:
        yield from (((api.group, api.version, kind), api.minor) for kind in api.kinds)


_MINORS = dict(_entries())


def removed_in(group: str, version: str, kind: str) -> int | None:
    """Return the first minor that does not serve a kind in a version, None where none is known."""
    return _MINORS.get((group, version, kind))
