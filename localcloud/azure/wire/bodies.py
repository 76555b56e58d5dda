"""The JSON body of a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from werkzeug.wrappers import Request

from localcloud.azure.world.arm_errors import ArmError


def read_body(request: Request) -> Mapping[str, Any]:
    """Return the object in the body of a request, or refuse the body."""
    try:
        body = json.loads(request.get_data())
    except ValueError:
        body = None
    if isinstance(body, dict):
        return body
    message = "The request content was invalid and could not be deserialized."
    raise ArmError(400, "InvalidRequestContent", message)
