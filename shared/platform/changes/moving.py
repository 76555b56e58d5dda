"""What moves by itself inside a tree that is pinned: no commit says when, and no stage holds it back.

Sources: fluxcd.io, "HelmRelease", "OCIRepository" and "GitRepository" of the source API v1; kubernetes.io,
"Images", for a tag that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.platform.changes.objects import IMAGE, SOURCE, PodTemplate, is_release, mapping_at, value_at
from shared.platform.inventory import Inventory, ObjectId

_EXACT = re.compile(r"v?\d+\.\d+\.\d+(?:[-+][\w.+-]+)?")


class Movement(StrEnum):
    """Why something moves, as a plan names it."""

    CHART = "a chart version that is a range"
    TAG = "a tag, which can be written again"
    RANGE = "a range of versions"
    BRANCH = "a branch"
    IMAGE = "an image without a fixed tag"
    BUCKET = "a bucket"
    COMMITS = "it commits image tags, each of which is a change of its own"
    REMOTE = "not in the repository"


@dataclass(frozen=True, order=True)
class MovingField:
    """A field whose meaning changes without a commit; ``id`` is None for what of the tree is elsewhere."""

    id: ObjectId | None
    field: str
    value: str
    why: Movement


def moving_parts(inventory: Inventory) -> tuple[MovingField, ...]:
    """Return what moves by itself, each once."""
    objects = {name: built for owner in inventory.owners.values() for name, built in owner.objects.items()}
    found = [moving for name in sorted(objects) for moving in _of_object(name, objects[name].manifest)]
    elsewhere = (MovingField(None, "", place, Movement.REMOTE) for place in sorted(inventory.unfollowed))
    return tuple(dict.fromkeys((*found, *elsewhere)))


def _of_object(name: ObjectId, manifest: Json) -> Iterator[MovingField]:
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        return
    if is_release(name):
        yield from _chart(name, spec)
    elif name.group == SOURCE:
        yield from _source(name, spec)
    elif (name.group, name.kind) == (IMAGE, "ImageUpdateAutomation"):
        branch = value_at(spec, "git.push.branch") or value_at(spec, "git.checkout.ref.branch")
        yield MovingField(name, "spec.git.push.branch", str(branch or ""), Movement.COMMITS)
    else:
        yield from _images(name, manifest)


def _chart(name: ObjectId, spec: Json) -> Iterator[MovingField]:
    chart = mapping_at(spec, "chart.spec")
    if value_at(chart, "sourceRef.kind") != "HelmRepository":
        return  # a chart in a repository or a bucket has the version that lies there
    version = str(chart.get("version") or "*")
    if not _EXACT.fullmatch(version):
        yield MovingField(name, "spec.chart.spec.version", version, Movement.CHART)


def _source(name: ObjectId, spec: Json) -> Iterator[MovingField]:
    ref = mapping_at(spec, "ref")
    semver = str(ref.get("semver") or "")
    match name.kind:
        case "OCIRepository" if not ref.get("digest"):
            if semver and not _EXACT.fullmatch(semver):
                yield MovingField(name, "spec.ref.semver", semver, Movement.RANGE)
            else:
                yield MovingField(
                    name, "spec.ref.tag", semver or str(ref.get("tag") or "latest"), Movement.TAG
                )
        case "GitRepository" if not ref.get("commit"):
            if str(ref.get("name") or "").startswith("refs/tags/"):
                return
            if semver and not _EXACT.fullmatch(semver):
                yield MovingField(name, "spec.ref.semver", semver, Movement.RANGE)
            elif ref.get("name") or not (semver or ref.get("tag")):
                branch = str(ref.get("name") or ref.get("branch") or "master")
                yield MovingField(name, "spec.ref.branch", branch, Movement.BRANCH)
        case "Bucket":
            yield MovingField(name, "spec.bucketName", str(spec.get("bucketName") or ""), Movement.BUCKET)


def _images(name: ObjectId, manifest: Json) -> Iterator[MovingField]:
    """Yield the images of all containers of a pod that have no fixed tag."""
    pod = PodTemplate.of(name, manifest)
    for path, container in pod.containers() if pod else ():
        image = str(container.get("image") or "")
        tag = image.rpartition("/")[2].partition(":")[2]
        if image and "@" not in image and tag in ("", "latest"):
            field = f"{'.'.join(map(str, path[:-1]))}[{container.get('name')}].image"
            yield MovingField(name, field, image, Movement.IMAGE)
