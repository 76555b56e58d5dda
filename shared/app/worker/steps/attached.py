"""The steps of an attached cluster: entered, marked as ours, verified, released.

The ConfigMap that says so is created, or replaced at the version that was read, so of two jobs that meet at a
cluster only one succeeds. Nothing else is written to the cluster before.
"""

from __future__ import annotations

from shared.app.access.contests import contest_of, unknown_life
from shared.app.access.context import StepContext, identity_of
from shared.app.worker.steps.flux.sync import other_source
from shared.app.worker.steps.still_removed import not_removed
from shared.azure.ownership import CONTEST_TAG, LIFE_TAG, tag
from shared.azure.running_versions import AppliedRevision, RunningVersions
from shared.cluster.failures.errors import AnotherCluster, NotOwned, SecretMissing
from shared.cluster.job import Contest, ContestKind
from shared.cluster.outcomes import Done, Fail, Outcome, Restart, Wait
from shared.frozen import replace
from shared.json_tree import Json
from shared.kubernetes.flux_objects import FACTS, is_ours
from shared.kubernetes.inside import PREFIX, facts_of
from shared.kubernetes.kubeconfig import OWNER_MAP, as_tagged, owner_map
from shared.ports import KubernetesApi

# The hold of a cluster outside Azure, which a takeover ends.

_PUT_BACK = (
    "Put the kubeconfig of the right cluster into the vault; or, if the cluster was built again, run"
    " `roadstead takeover NAME`."
)


def another_cluster(context: StepContext, error: AnotherCluster) -> Wait:
    """Return the wait of a cluster whose kubeconfig leads to another one; a takeover accepts that one."""
    reason = f"the cluster {context.record.name} is not written to: {error}"
    contest = Contest(ContestKind.IDENTITY)
    return Wait.for_person(reason, _PUT_BACK, contest=contest)


# What a cluster outside Azure may have before Roadstead marks it as its own, and what then holds the job.

_SOURCES = (
    "Write what Flux follows there into the manifest, or delete these objects of Flux without what they"
    " applied (docs/how-to/attach-an-existing-cluster.md)."
)


def first_entry(context: StepContext, api: KubernetesApi) -> Outcome | None:
    """Return why a cluster that nobody has marked is not taken, None where it may be."""
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
    return Wait.for_person(f"{reason}: {', '.join(differs)}", _SOURCES)


def ensure_owner(context: StepContext) -> Outcome:
    """Enter the cluster with an administrator's rights, and write whose it is where that differs."""
    api = context.kubernetes()
    api.check()
    live = api.get(OWNER_MAP)
    done = Done(cluster_uid=identity_of(api), facts=facts_of(context.desired, {}))
    if live is None:
        hindrance = first_entry(context, api)
        if hindrance:
            return hindrance
        api.create(owner_map(_tags(context, {})))
        return replace(done, note="marked the cluster as this fleet's")
    tagged = as_tagged(live)
    hindrance = _hindrance(context, api, live, tagged)
    if hindrance:
        return hindrance
    done = replace(done, life=tag(tagged, LIFE_TAG) or "")
    if _is_written(context, tagged):
        return done
    api.replace({**live, "data": _tags(context, tagged)})
    return replace(done, note="marked the cluster again as this fleet's")


def still_ours(context: StepContext) -> Json | Outcome:
    """Return what a cluster says of whose it is, read before a write; or why a step does not write to it."""
    api = context.kubernetes()
    live = api.get(OWNER_MAP)
    if live is None:
        return Restart(f"nothing on the cluster {context.record.name} says any more that it is this fleet's")
    tagged = as_tagged(live)
    return _hindrance(context, api, live, tagged) or tagged


def _tags(context: StepContext, tagged: Json) -> dict[str, str]:
    return context.owner.cluster_tags(tagged)


def _is_written(context: StepContext, tagged: Json) -> bool:
    wanted = context.owner.cluster_tags(tagged)
    same = all(tag(tagged, key) == value for key, value in wanted.items())
    return same and tag(tagged, CONTEST_TAG) is None


def _hindrance(context: StepContext, api: KubernetesApi, live: Json, tagged: Json) -> Outcome | None:
    owner, record = context.owner, context.record
    if not owner.owns(tagged):
        problem = f"the cluster {record.name} is not touched: {OWNER_MAP} says that it is not this one"
        return Fail(NotOwned(f"{problem}: {owner.describe_tags(tagged)}"))
    contest = contest_of(context, tagged)
    if contest:
        _leave_mark(context, api, live, tagged, contest)
        return contest
    return unknown_life(context, tagged)


def _leave_mark(context: StepContext, api: KubernetesApi, live: Json, tagged: Json, contest: Wait) -> None:
    """Mark the cluster of another installation as contested by ours, once, at the version that was read."""
    mine, owner = context.owner.installation, context.owner
    named = contest.contest is not None and any(contest.contest.installations)
    if mine is None or not named or owner.is_contested(tagged) or owner.is_by_us(tagged):
        return
    if not context.record.recovering:
        api.replace({**live, "data": {**(live.get("data") or {}), CONTEST_TAG: str(mine)}})


# Release a cluster outside Azure: it is no longer marked as ours, and nothing else changes.
#
# What Roadstead applied keeps running, Flux included: the cluster was there before, and somebody else may
# use it next. Whoever wants it empty removes that by the manifests of git first.


def release_cluster(context: StepContext) -> Outcome:
    """Remove what marks the cluster as ours; where it may not be ours any more, leave everything.

    Without its secret nobody enters the cluster: whoever deletes or disables that lets a cluster go that
    no longer answers.
    """
    restored = not_removed(context, {}, started=False)
    if restored:
        return restored
    try:
        api = context.kubernetes()
    except (SecretMissing, AnotherCluster) as error:
        return Done(f"left the cluster as it is: {error}", retained=True)
    live = api.get(OWNER_MAP)
    if live is None:
        return Done("nothing on the cluster says that it is this fleet's")
    tagged, owner = as_tagged(live), context.owner
    if not owner.owns(tagged) or owner.rivals(tagged) or not owner.is_our_life(tagged):
        return Done(f"left the cluster as it is: the {OWNER_MAP} is of somebody else", retained=True)
    api.delete(live)
    return Done(f"removed the {OWNER_MAP}; what runs on the cluster stays")


# The end of a job at a cluster that is not in Azure: nothing of it is compared there.


def verified_elsewhere(api: KubernetesApi, applied: AppliedRevision) -> Done:
    """Return the end of the job."""
    return Done(str(applied), running=RunningVersions(nodes=len(api.list("v1", "Node")), flux=applied))
