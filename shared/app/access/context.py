"""The context of a step: the cluster's record, the ports, and the tags that mark the cluster as ours."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

from shared.app.access.cluster_access import enter, private_api
from shared.azure.ownership import Installation, Owner
from shared.cluster.job import Job
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass
from shared.language.desired import Desired
from shared.ports import KubernetesApi, Ports
from shared.ports.azure import AzureCall
from shared.resource_ids import ClusterId

T = TypeVar("T")


@dataclass(frozen=True)
class StepContext:
    """Built once per step. The spec is parsed when it is used, so that a delete works without a valid one."""

    record: ClusterRecord
    ports: Ports
    owner: Owner

    @classmethod
    def of(cls, record: ClusterRecord, ports: Ports) -> StepContext:
        """Return the context of the step that the record is at."""
        config = ports.config
        mine = config.installation or record.ownership.installation
        former = () if record.ownership.installation in ("", mine) else (record.ownership.installation,)
        owner = Owner(
            config.fleet,
            config.repository,
            record.name,
            config.previous_repository,
            installation=Installation(mine, config.branch) if mine else None,
            life=record.azure.life or record.uid,
            known=record.azure.was_tagged,
            overruled=(*record.ownership.overruled, *former),
            predecessors=(*record.ownership.predecessors, *former),
        )
        return cls(record, ports, owner)

    @property
    def job(self) -> Job:
        """The job whose step runs."""
        return self.record.job

    @property
    def desired(self) -> Desired:
        """The spec that the job brings about."""
        return self.record.desired

    @property
    def cluster(self) -> ClusterId:
        """Where the cluster lives in Azure."""
        return self.desired.id

    @property
    def enters(self) -> bool:
        """Whether steps may work inside the cluster: the Flux extension alone needs no way to its API server.

        With the components of the repository there is no other way than inside.
        """
        desired = self.desired
        return not (desired.has_extension and desired.is_private) or self.ports.config.reaches_private is True

    @property
    def poll_seconds(self) -> float:
        """The seconds until the next read of Azure, spread so that clusters do not read at the same time."""
        return self.ports.config.timing.poll_seconds * (0.9 + 0.2 * self.ports.random())

    def azure(self, operation: AzureCall[T]) -> T:
        """Make one call to Azure."""
        return self.ports.azure.call(operation)

    def kubernetes(self) -> KubernetesApi:
        """Return the Kubernetes API of the cluster."""
        if self.desired.is_attached:
            return self._elsewhere
        api = self.ports.kubernetes.connect(self.cluster)
        return private_api(api) if self.desired.is_private else api

    @cached_property
    def _elsewhere(self) -> KubernetesApi:
        """The API of a cluster that is not in Azure, with the kubeconfig as the vault has it now."""
        return enter(self.record, self.ports)
