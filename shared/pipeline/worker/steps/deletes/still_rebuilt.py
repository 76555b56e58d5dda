"""Whether the head of the branch asks for a rebuild of the cluster whose delete is about to begin.

The annotation is read from git itself, and the life from the cluster in Azure: neither old tables, nor
whoever can write them, have a cluster deleted that git keeps, or that was rebuilt already.
"""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from shared.fleet.aks.ownership import LIFE_TAG, created_for, tag
from shared.fleet.json_tree import Json
from shared.fleet.manifests.arm_types import UtcMoment
from shared.fleet.manifests.kinds import REBUILD
from shared.fleet.planning.plan import Action
from shared.fleet.resolve.repository_layout import Files, cluster_path
from shared.fleet.yaml_tree.parser import YamlError, parse
from shared.pipeline.repository.blob_reader import read_blobs
from shared.pipeline.worker.steps.context import StepContext

_MOMENT = TypeAdapter(UtcMoment)
_ANNOTATION = ("metadata", "annotations", REBUILD)


def asked_rebuild(context: StepContext, head: str, files: Files) -> str:
    """Return the time of the rebuild for which a commit has the cluster deleted, "" for none.

    It is "" unless the cluster will be created again: the manifest was accepted by the plan of that commit.
    """
    record, path = context.record, cluster_path(context.record.name)
    if path not in files.blobs:
        return ""
    blob = files.blobs[path]
    asked = _annotation(read_blobs(head, {path: blob}, context.ports)[blob], path)
    if asked <= record.rebuilt_for:
        return ""
    return asked if head == record.commit or _is_planned(context, head) else ""


def is_rebuilt_already(existing: Json, asked: str) -> bool:
    """Return whether the life of a cluster was created for this rebuild, or for a later one."""
    return created_for(tag(existing, LIFE_TAG) or "") >= asked


def _annotation(content: bytes, path: str) -> str:
    """Return the time of the annotation of a manifest, "" for none, and for one that is no time."""
    try:
        node = parse(content, path).find(_ANNOTATION)
        return _MOMENT.validate_python(node.value)
    except (YamlError, ValidationError):
        return ""


def _is_planned(context: StepContext, head: str) -> bool:
    """Return whether the plan of the head has the cluster created again once its delete has ended."""
    fleet = context.ports.state.fleet()
    newest = context.ports.state.plan(head) if head == fleet.commit and not fleet.planning else None
    items = (item for item in newest.plan.items if item.cluster == context.record.name) if newest else ()
    return any(item.awaits_deletion or item.action is Action.REBUILD for item in items)
