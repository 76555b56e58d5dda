"""Whether Flux has reconciled what Roadstead asked it to pull and to apply, and what came of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from shared.app.access.context import StepContext
from shared.app.worker.steps.bootstrap_secrets import secret_behind
from shared.app.worker.steps.flux.applied import LiveObjects
from shared.app.worker.steps.flux.pinned import kinds_of_flux
from shared.app.worker.steps.flux.sync import request_of
from shared.app.worker.steps.flux.waiting import (
    FluxProgress,
    first_wait,
    follows,
    older_commit,
    until_next_look,
)
from shared.azure.running_versions import AppliedRevision
from shared.cluster.outcomes import Outcome, Restart
from shared.frozen import replace
from shared.json_tree import Json
from shared.kubernetes import flux_objects
from shared.kubernetes.flux_readiness import FluxFailure, Progressing, Ready, readiness, reconciled
from shared.kubernetes.sync_objects import source_ref, sync_objects
from shared.language.model.cluster.flux_source import MAIN
from shared.ports import KubernetesApi
from shared.resource_ids import ObjectRef

_OWNER = "kustomize.toolkit.fluxcd.io"
"""The prefix of the labels with which Flux marks what a Kustomization applied."""
_Source = tuple[str, str]
"""The kind and the name of a source in the namespace of Flux."""


def applied_revision(context: StepContext, api: KubernetesApi) -> AppliedRevision | Outcome:
    """Return what the first Kustomization applied, or the wait for what Flux has not reconciled yet.

    That counts every source and Kustomization of the manifest, at what the sources fetched after the request
    of the job, and the objects of Flux that these applied, children of children included.
    """
    manifests = sync_objects(context.desired, context.owner.fleet, None)
    live = LiveObjects([flux_objects.ref_of(manifest) for manifest in manifests], api)
    sources = [manifest for manifest in manifests if manifest["kind"] != flux_objects.KUSTOMIZATION.kind]
    states = [_found(source, live, context) for source in sources]
    wait = _first_wait(context, states)
    if wait:
        return _other_credentials(context, api, sources, states) or wait
    revisions = {(state.ref.kind, state.ref.name): _revision(state) for state in states}
    stale = older_commit(context, revisions[_key(source_ref(context.desired.spec.flux.main))])
    if stale:
        return stale
    applied = [manifest for manifest in manifests if manifest["kind"] == flux_objects.KUSTOMIZATION.kind]
    states = [
        _at_revision(_found(document, live, context), document, revisions, context) for document in applied
    ]
    wait = _first_wait(context, states)
    if wait:
        return _other_credentials(context, api, applied, states) or wait
    wait = _first_wait(context, _children(context, api, states, revisions))
    return wait or AppliedRevision(_revision(states[0]), context.ports.clock())


def _other_credentials(
    context: StepContext, api: KubernetesApi, manifests: Iterable[Json], states: Iterable[FluxProgress]
) -> Restart | None:
    """Return the restart of a job where Flux fails, and has other credentials than there are now.

    An earlier step has applied those. A deployment of the app may have brought others since, or somebody a
    new version of a bootstrap secret into its vault; of these, what fails is to name it.
    """
    failed = {found.ref for found in states if isinstance(found.state, FluxFailure)}
    if context.record.recovering or not failed:
        return None
    credentials = context.ports.config.git_credentials
    for manifest in sync_objects(context.desired, context.owner.fleet, credentials):
        secret = flux_objects.ref_of(manifest) == flux_objects.SECRET
        if secret and not flux_objects.is_applied(manifest, api.get(flux_objects.SECRET)):
            return Restart("the app has other git credentials than the cluster")
    specs = [manifest["spec"] for manifest in manifests if flux_objects.ref_of(manifest) in failed]
    named = [(spec.get("decryption") or spec).get("secretRef") or {} for spec in specs]
    behind = secret_behind(context, [str(found.get("name")) for found in named], api)
    return (
        Restart(f"the vault has another version of the Secret {behind} than the cluster") if behind else None
    )


def _key(ref: ObjectRef) -> _Source:
    return ref.kind, ref.name


def _found(manifest: Json, live: LiveObjects, context: StepContext) -> FluxProgress:
    ref = flux_objects.ref_of(manifest)
    found = live.get(ref)
    state = None if found is None else readiness(found, request_of(context))
    return FluxProgress(ref, state, _place(ref), _resume(ref))


def _revision(found: FluxProgress) -> str:
    return found.state.revision if isinstance(found.state, Ready) else ""


def _at_revision(
    found: FluxProgress, manifest: Json, revisions: Mapping[_Source, str], context: StepContext
) -> FluxProgress:
    """Return a Kustomization, as one in progress where it has not applied yet what its source fetched."""
    source = manifest["spec"].get("sourceRef") or {}
    fetched = revisions.get((str(source.get("kind")), str(source.get("name"))))
    applied = _revision(found)
    if not isinstance(found.state, Ready) or fetched is None or applied == fetched:
        return found
    is_first = source.get("name") == MAIN
    if is_first and follows(context, applied):
        return found
    text = f"it applied {applied or 'nothing'}, the source is at {fetched}"
    return replace(found, state=Progressing(text))


def _children(
    context: StepContext,
    api: KubernetesApi,
    parents: Iterable[FluxProgress],
    revisions: Mapping[_Source, str],
) -> Iterator[FluxProgress]:
    """Yield the objects of Flux that our Kustomizations applied, and those that these applied in turn."""
    manifests = flux_objects.components(context.ports.git_host.blob(context.desired.components))
    objects = [document for kind in kinds_of_flux(context, manifests) for document in api.list(*kind)]
    for live in _descendants(objects, {(parent.ref.namespace, parent.ref.name) for parent in parents}):
        ref, spec = flux_objects.ref_of(live), live.get("spec") or {}
        if spec.get("suspend"):
            continue
        found = FluxProgress(ref, reconciled(live), "", _resume(ref))
        in_our_namespace = (spec.get("sourceRef") or {}).get("namespace", ref.namespace) == _NAMESPACE
        yield _at_revision(found, live, revisions, context) if in_our_namespace else found


_NAMESPACE = flux_objects.NAMESPACE


def _descendants(objects: Sequence[Json], parents: set[tuple[str, str]]) -> list[Json]:
    """Return the objects that Kustomizations at these places applied, directly or through each other."""
    found: list[Json] = []
    rest = list(objects)
    while True:
        children = [document for document in rest if _parent(document) in parents]
        if not children:
            return found
        found += children
        rest = [document for document in rest if _parent(document) not in parents]
        parents = {
            (ref.namespace, ref.name)
            for ref in map(flux_objects.ref_of, children)
            if ref.kind == flux_objects.KUSTOMIZATION.kind
        }


def _parent(live: Json) -> tuple[str, str]:
    """Return namespace and name of the Kustomization that applied an object; none applied itself."""
    metadata = live["metadata"]
    labels = metadata.get("labels") or {}
    parent = str(labels.get(f"{_OWNER}/namespace", "")), str(labels.get(f"{_OWNER}/name", ""))
    itself = live["kind"] == flux_objects.KUSTOMIZATION.kind and parent == (
        str(metadata.get("namespace", "")),
        str(metadata["name"]),
    )
    return ("", "") if itself else parent


def _first_wait(context: StepContext, found: Iterable[FluxProgress]) -> Outcome | None:
    return first_wait(context, found, until_next_look(context))


def _resume(ref: ObjectRef) -> str:
    return f"flux -n {ref.namespace} resume {_FLUX_NAMES.get(ref.kind, ref.kind.lower())} {ref.name}"


_FLUX_NAMES = {
    "GitRepository": "source git",
    "OCIRepository": "source oci",
    "Bucket": "source bucket",
    "Kustomization": "kustomization",
}
"""What the Flux command calls these kinds."""


def _place(ref: ObjectRef) -> str:
    if ref.name == _NAMESPACE:
        return "spec.flux"
    kind = "kustomizations" if ref.kind == flux_objects.KUSTOMIZATION.kind else "sources"
    return f"spec.flux.{kind}[{ref.name}]"
