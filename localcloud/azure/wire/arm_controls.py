"""Controls of the local Azure, for faults and for what people do: ``POST /_local/clusters/NAME/CONTROL``.

``fail`` {"code"} or {"code", "message"}, ``stick``, ``vanish`` and ``lag`` {"pool"} wait for the next
operation of the cluster of that name, which need not exist yet, and ``event`` {"after"} for its next event;
``block`` {"code"} fails its deletes until ``unblock``. ``stop``, ``start``, ``abort``,
``scale`` {"pool", "count"}, ``image`` {"pool", "image"}, ``tag`` {"name", "value"} and ``delete`` happen at
once, or begin to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.azure.world.interventions import Interventions
from localcloud.common.http_server import json_response
from shared.resource_ids import ClusterId

_PATH = re.compile(r"/_local/clusters/(?P<name>[^/]+)/(?P<control>\w+)")
_NEXT: Mapping[str, Callable[..., None]] = {
    "fail": Interventions.fail_next,
    "stick": Interventions.stick_next,
    "vanish": Interventions.vanish_next,
    "lag": Interventions.lag_next,
    "event": Interventions.deliver_next,
    "block": Interventions.block,
    "deny": Interventions.deny,
    "unblock": Interventions.unblock,
}
_NOW: Mapping[str, Callable[..., None]] = {
    "stop": Interventions.stop,
    "start": Interventions.start,
    "abort": Interventions.abort,
    "scale": Interventions.scale,
    "image": Interventions.set_node_image,
    "tag": Interventions.tag,
    "delete": Interventions.delete,
}
CONTROLS = (*_NEXT, *_NOW)


def control(world: AzureWorld, request: Request) -> Response:
    """Answer a request below ``/_local/``: 204, or 404 or 400 with the reason."""
    match = _PATH.fullmatch(request.path)
    if match is None or request.method != "POST" or match["control"] not in CONTROLS:
        return json_response(404, {"message": "no such control of the local Azure"})
    name, wanted = match["name"], match["control"]
    try:
        values: dict[str, Any] = json.loads(request.get_data() or b"{}")
        if wanted in _NEXT:
            _NEXT[wanted](world.interventions, name, **values)
        else:
            _NOW[wanted](world.interventions, _named(world, name), **values)
    except ArmError as error:
        return json_response(error.status, error.body())
    except (KeyError, TypeError, ValueError) as error:
        fields = " and ".join([*signature({**_NEXT, **_NOW}[wanted]).parameters][2:]) or "no fields"
        message = f"{wanted} takes {fields}; {type(error).__name__}: {error}"
        return json_response(400, {"message": message})
    return Response(status=204)


def _named(world: AzureWorld, name: str) -> ClusterId:
    """Return the id of the cluster of a name, wherever it is."""
    found = next((identifier for identifier in world.ids() if identifier.name.lower() == name.lower()), None)
    if found is None:
        raise ArmError(404, "ResourceNotFound", f"There is no cluster of the name '{name}'.")
    return found
