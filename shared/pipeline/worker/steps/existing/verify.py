"""The end of a job at a cluster that is not in Azure: nothing of it is compared there."""

from __future__ import annotations

from shared.jobs.outcomes import Done
from shared.jobs.record import AppliedRevision, Running
from shared.ports import KubernetesApi


def verified_elsewhere(api: KubernetesApi, applied: AppliedRevision) -> Done:
    """Return the end of the job."""
    return Done(str(applied), running=Running(nodes=len(api.list("v1", "Node")), flux=applied))
