"""The way into a cluster outside Azure: a kubeconfig from a vault, and the proof that it is the same cluster.

Whoever writes the secret can let it lead to another cluster at any time. So each step reads the secret again,
and compares the identity of the cluster that it meets with that of the record, before it reads or writes
anything else there. A cluster's identity is the uid of its namespace kube-system, which lives as long as it
does (OpenTelemetry's ``k8s.cluster.uid``: opentelemetry.io/docs/specs/semconv/resource/k8s).
"""

from __future__ import annotations

from shared.fleet.kubernetes.kubeconfig import Kubeconfig, KubeconfigError, read_kubeconfig
from shared.fleet.resource_ids import ObjectRef
from shared.jobs.failures.errors import AnotherCluster, Dependency, InvalidKubeconfig
from shared.jobs.record import ClusterRecord
from shared.ports import KubernetesApi, Ports

_IDENTITY = ObjectRef("v1", "Namespace", "kube-system")


def enter(record: ClusterRecord, ports: Ports) -> KubernetesApi:
    """Return the API of the cluster of a record; raise AnotherCluster where it is not the same as before."""
    api = ports.kubernetes.open(record.desired.id, _kubeconfig(record, ports))
    if record.cluster_uid and identity_of(api) != record.cluster_uid:
        vault, secret = record.desired.kubeconfig or ("", "")
        leads = (
            f"the kubeconfig in the secret {secret} of the vault {vault} leads to another cluster than before"
        )
        raise AnotherCluster(f"{leads}: the uid of its namespace kube-system differs")
    return api


def identity_of(api: KubernetesApi) -> str:
    """Return the identity of a cluster; raise Dependency where it does not show one."""
    found = api.get(_IDENTITY)
    uid = str(found["metadata"].get("uid") or "") if found else ""
    if not uid:
        raise Dependency("the cluster shows no namespace kube-system", code="NotFound")
    return uid


def _kubeconfig(record: ClusterRecord, ports: Ports) -> Kubeconfig:
    vault, secret = record.desired.kubeconfig or ("", "")
    try:
        return read_kubeconfig(ports.vaults.secret(vault, secret).value)
    except KubeconfigError as error:
        raise InvalidKubeconfig(f"the secret {secret} of the vault {vault}: {error}") from None
