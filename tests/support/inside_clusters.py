"""Clusters of a local cloud from inside, over their API servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from localcloud.common.clock import system_clock
from shared.adapters.kubernetes import KubernetesConnections
from shared.cluster.failures.errors import Conflict
from shared.json_tree import Json
from shared.kubernetes.flux_readiness import REQUESTED_AT
from shared.ports import KubernetesApi
from shared.resource_ids import ClusterId, ObjectRef
from tests.support.arm_client import SUBSCRIPTION
from tests.support.fleet_operator import Operator


@contextmanager
def kubernetes(operator: Operator, name: str) -> Iterator[KubernetesApi]:
    """Yield the Kubernetes API of a cluster, entered with the kubeconfig that the local cloud writes."""
    text = (operator.cloud.state / "kubeconfigs" / f"{name}.yaml").read_text()
    connections = KubernetesConnections(lambda _: text, aad_token=None, clock=system_clock)
    with closing(connections):
        yield connections.connect(ClusterId(SUBSCRIPTION, f"rg-{name}", name))


def reconcile_now(api: KubernetesApi, *refs: ObjectRef) -> None:
    """Ask Flux to reconcile these objects now, as ``flux reconcile`` does."""
    for ref in refs:
        requested = str(system_clock())

        def request(live: Json, requested: str = requested) -> None:
            annotations = {**(live["metadata"].get("annotations") or {}), REQUESTED_AT: requested}
            api.replace({**live, "metadata": {**live["metadata"], "annotations": annotations}})

        over_newest(api, ref, request)


def over_newest(api: KubernetesApi, ref: ObjectRef, write: Callable[[Json], None]) -> None:
    """Write over the newest version of an object: a controller may write its status at the same moment."""
    while True:
        live = api.get(ref)
        assert live is not None
        try:
            write(live)
        except Conflict:
            continue
        return
