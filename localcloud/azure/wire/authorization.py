"""Azure's check of a role: whether it has the action that a request needs.

The name of an action follows from the request: the resource types of its path, then ``read`` for GET,
``write`` for PUT and PATCH, ``delete`` for DELETE, and the last part of the path with ``action`` for POST.
``*`` stands for anything, and case is ignored (learn.microsoft.com/azure/role-based-access-control: "Azure
permissions" and "Understand Azure role definitions").
"""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from localcloud.azure.world.arm_errors import ArmError

VERBS = {"GET": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}


def action_of(method: str, path: str) -> str:
    """Return the name of the action that a request needs, in lower case."""
    provider, parts = "Microsoft.Resources/subscriptions", path.strip("/").split("/")[2:]
    if [part.lower() for part in parts[:2]] == ["providers", "microsoft.features"]:
        provider, parts = "Microsoft.Features", parts[2:]
    elif "providers" in parts[:-1]:
        _, _, rest = path.rpartition("/providers/")
        provider, *parts = rest.split("/")
    name = "/".join([provider, *parts[0::2], VERBS.get(method, "action")])
    return name.lower()


def allows(granted: Collection[str], action: str) -> bool:
    """Return whether a role with these actions allows one."""
    return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in granted)


def authorize(method: str, path: str, granted: Collection[str] | None) -> None:
    """Raise Azure's answer to a request that a role does not allow; None is a role that allows everything."""
    action = action_of(method, path)
    if granted is not None and not allows(granted, action):
        message = (
            f"The client does not have authorization to perform action '{action}' over scope '{path}' or the "
            "scope is invalid. If access was recently granted, please refresh your credentials."
        )
        raise ArmError(403, "AuthorizationFailed", message)
