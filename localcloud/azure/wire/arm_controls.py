"""What the local Azure does to a cluster when it is told to: ``POST /_local/clusters/NAME/CONTROL``.

``fail`` {"code", "message"}, ``stick``, ``vanish`` and ``lag`` {"pool"} wait for the next operation of the
cluster of that name, which need not exist yet; ``stop``, ``start``, ``abort``, ``scale`` {"pool", "count"}
and ``image`` {"pool", "image"} happen at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.http_server import json_response
from shared.fleet.resource_ids import ClusterId

_PATH = re.compile(r"/_local/clusters/(?P<name>[^/]+)/(?P<control>\w+)")
_NEXT: Mapping[str, Callable[..., None]] = {
    "fail": AzureWorld.fail_next,
    "stick": AzureWorld.stick_next,
    "vanish": AzureWorld.vanish_next,
    "lag": AzureWorld.lag_next,
}
_NOW: Mapping[str, Callable[..., None]] = {
    "stop": AzureWorld.stop,
    "start": AzureWorld.start,
    "abort": AzureWorld.abort,
    "scale": AzureWorld.scale,
    "image": AzureWorld.set_node_image,
}


def control(world: AzureWorld, request: Request) -> Response:
    """Answer a request below ``/_local/``: 204, or 404 or 400 with the reason."""
    match = _PATH.fullmatch(request.path)
    if match is None or request.method != "POST" or match["control"] not in {**_NEXT, **_NOW}:
        return json_response(404, {"message": "no such control of the local Azure"})
    name, wanted = match["name"], match["control"]
    try:
        values: dict[str, Any] = json.loads(request.get_data() or b"{}")
        if wanted in _NEXT:
            _NEXT[wanted](world, name, **values)
        else:
            _NOW[wanted](world, _named(world, name), **values)
    except ArmError as error:
        return json_response(error.status, error.body())
    except (KeyError, TypeError, ValueError) as error:
        return json_response(400, {"message": f"{wanted}: {type(error).__name__}: {error}"})
    return Response(status=204)


def _named(world: AzureWorld, name: str) -> ClusterId:
    """Return the id of the cluster of a name, wherever it is."""
    found = next((one for one in world.ids() if one.name.lower() == name.lower()), None)
    if found is None:
        raise ArmError(404, "ResourceNotFound", f"There is no cluster of the name '{name}'.")
    return found
