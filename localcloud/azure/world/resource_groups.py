"""The operations on resource groups, which Azure deletes with all that is in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.access.identities import Identities
from localcloud.azure.world.arm_errors import ArmError, group_being_deleted
from localcloud.azure.world.arm_keys import group_key
from localcloud.azure.world.arm_resources import ArmGroup, WriteAnswer
from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.azure.world.body_shapes import read_group, read_group_patch
from localcloud.azure.world.catalog import REGIONS, region
from localcloud.common.json_copy import copied
from shared.json_tree import Json
from shared.resource_ids import ClusterId

_TAG_OPERATIONS: Mapping[str, Callable[[Json, Json], dict[str, Any]]] = {
    "Merge": lambda before, given: {**before, **given},
    "Replace": lambda _, given: dict(given),
    "Delete": lambda before, given: {name: value for name, value in before.items() if name not in given},
}
"""The operations of a patch (specification/resources, tags, TagsPatchResource)."""
_GROUP_NAME = re.compile(r"[-\w._()]{1,89}[-\w_()]|[-\w_()]")


class ResourceGroups:
    """The resource groups of every subscription."""

    engine: AzureEngine
    identities: Identities

    def list_groups(self, subscription: str) -> list[Json]:
        """Return the resource groups of a subscription."""
        with self.engine.request(subscription, limits.ARM_READ):
            groups = self.engine.groups.items()
            return [copied(group.document) for key, group in groups if key[0] == subscription.lower()]

    def get_group(self, subscription: str, name: str) -> Json:
        """Return a resource group."""
        with self.engine.request(subscription, limits.ARM_READ):
            return copied(self.engine.group(subscription, name).document)

    def put_group(self, subscription: str, name: str, body: Json) -> WriteAnswer:
        """Create or update a resource group; its location is fixed."""
        with self.engine.request(subscription, limits.ARM_WRITE):
            body = read_group(body)
            location = region(body.get("location") or "")
            group = self.engine.groups.get(group_key(subscription, name))
            _check_group(name, location, group)
            document = {
                "id": f"/subscriptions/{subscription}/resourceGroups/{name}",
                "name": name,
                "type": "Microsoft.Resources/resourceGroups",
                **(group.document if group else {}),
                "location": location,
                "tags": dict(body.get("tags") or {}),
                "properties": {"provisioningState": "Succeeded"},
            }
            self.engine.groups[group_key(subscription, name)] = ArmGroup(document)
            kind, status = ("update-group", 200) if group else ("create-group", 201)
            return self.engine.accept(WriteAnswer(kind, document["id"], status, document))

    def patch_group(self, subscription: str, name: str, body: Json) -> WriteAnswer:
        """Set the tags of a group; without tags nothing changes."""
        with self.engine.request(subscription, limits.ARM_WRITE):
            tags = read_group_patch(body).get("tags")
            document = self.engine.group(subscription, name).document
            if tags is not None:
                document["tags"] = dict(tags)
            return self.engine.accept(WriteAnswer("update-group", document["id"], 200, copied(document)))

    def get_tags(self, subscription: str, name: str, cluster: str = "") -> Json:
        """Return the tags of a group, or of a cluster in it."""
        with self.engine.request(subscription, limits.ARM_READ):
            return _tags(self._tagged(subscription, name, cluster))

    def patch_tags(self, subscription: str, name: str, body: Json, cluster: str = "") -> WriteAnswer:
        """Merge, replace or delete tags of a group, or of a cluster in it; without an operation, set them."""
        with self.engine.request(subscription, limits.ARM_WRITE):
            document = self._tagged(subscription, name, cluster)
            change = _TAG_OPERATIONS.get(body.get("operation", "Replace"))
            if change is None:
                message = f"The operation '{body['operation']}' is invalid: Merge, Replace or Delete."
                raise ArmError(400, "InvalidTagPatchOperation", message)
            document["tags"] = change(
                document.get("tags") or {}, (body.get("properties") or {}).get("tags") or {}
            )
            if cluster:
                document["eTag"] = self.engine.schedule.unique()
            return self.engine.accept(WriteAnswer("update-tags", document["id"], 200, _tags(document)))

    def _tagged(self, subscription: str, name: str, cluster: str) -> dict[str, Any]:
        if not cluster:
            return self.engine.group(subscription, name).document
        found = self.engine.cluster(ClusterId(subscription, name, cluster))
        found.require_idle()
        return found.document

    def delete_group(self, subscription: str, name: str) -> WriteAnswer:
        """Start to delete a group and all that is in it."""
        with self.engine.request(subscription, limits.ARM_DELETE) as now:
            group = self.engine.group(subscription, name)
            if group.deleting is not None:
                return WriteAnswer("", group.document["id"], 202, operation=group.deleting)
            inside = self.engine.inside(subscription, name)
            self.identities.delete_inside(subscription, name)
            ends = [now, *(self.engine.start_delete(cluster, now).due for cluster in inside)]
            due = max(ends) + timedelta(seconds=self.engine.timings.of("delete-group"))
            group.deleting = self.engine.schedule.start(
                "delete-group", group.document["id"], group.document["location"], now=now, due=due
            )
            group.document["properties"] = {"provisioningState": "Deleting"}
            return self.engine.accept(
                WriteAnswer("delete-group", group.document["id"], 202, operation=group.deleting)
            )

    def list_resources(self, subscription: str, name: str) -> list[Json]:
        """Return what is in a group, from a cache: id, name, type, location, tags."""
        with self.engine.request(subscription, limits.ARM_READ):
            self.engine.group(subscription, name)
            keys = ("id", "name", "type", "location", "tags")
            clusters = [cluster.document for cluster in self.engine.listed(subscription, name)]
            inside = [*clusters, *self.identities.inside(subscription, name)]
            return [copied({key: document[key] for key in keys}) for document in inside]


def _check_group(name: str, location: str, existing: ArmGroup | None) -> None:
    if not _GROUP_NAME.fullmatch(name):
        raise ArmError(400, "InvalidResourceGroupName", f"The resource group name '{name}' is invalid.")
    if location not in REGIONS:
        raise ArmError(
            400,
            "LocationNotAvailableForResourceGroup",
            f"The provided location '{location}' is not available for resource group.",
        )
    if existing is None:
        return
    if existing.deleting is not None:
        raise group_being_deleted(name)
    if existing.document["location"] != location:
        raise ArmError(
            409,
            "InvalidResourceGroupLocation",
            f"Invalid resource group location '{location}'. The Resource group already exists in location "
            f"'{existing.document['location']}'.",
        )


def _tags(document: Json) -> Json:
    return {
        "id": f"{document['id']}/providers/Microsoft.Resources/tags/default",
        "name": "default",
        "type": "Microsoft.Resources/tags",
        "properties": {"tags": dict(document.get("tags") or {})},
    }
