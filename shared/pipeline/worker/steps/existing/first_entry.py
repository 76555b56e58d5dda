"""What a cluster outside Azure may have before Roadstead marks it as its own, and what then holds the job."""

from __future__ import annotations

from shared.fleet.kubernetes.flux.cluster_facts import PREFIX
from shared.fleet.kubernetes.flux.flux_objects import FACTS, is_ours
from shared.jobs.failures.errors import NotOwned
from shared.jobs.outcomes import Fail, Outcome, Wait
from shared.pipeline.worker.steps.azure_state import OBSERVE_SECONDS
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.existing.holds import held_elsewhere
from shared.pipeline.worker.steps.flux.sync import other_source
from shared.ports import KubernetesApi

_SOURCES = (
    "Write what Flux follows there into the manifest, or delete these objects of Flux without what they"
    " applied (docs/how-to/attach-an-existing-cluster.md)."
)


def first_entry(context: StepContext, api: KubernetesApi) -> Outcome | None:
    """Return why a cluster that nobody has marked is not taken, None where it may be."""
    if context.record.rebuilding:
        return held_elsewhere(context, "nothing on it says whose it is")
    facts = api.get(FACTS) or {}
    in_azure = (facts.get("data") or {}).get(f"{PREFIX}resource_id")
    if facts and is_ours(facts) and in_azure:
        return Fail(NotOwned(f"a fleet manages this cluster in Azure, as {in_azure}"))
    differs = other_source(context)
    if not differs:
        return None
    reason = (
        f"Flux on the cluster {context.record.name} follows something else, and would delete what that has"
    )
    return Wait(OBSERVE_SECONDS, f"{reason}: {', '.join(differs)}", action_required=_SOURCES, open_ended=True)
