"""Lists in pages: ``limit`` and ``continue``.

A page starts after the last object of the page before, at the present version; the real API returns every
page at the version of the first one.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from localcloud.kubernetes.world.api_errors import bad_request
from localcloud.kubernetes.world.object_store import Object


def page(objects: Sequence[Object], size: int, after: str) -> tuple[Sequence[Object], str]:
    """Return a page of ``size`` (0: all), and the token of the next one ("" when there is none).

    ``objects`` are in order.
    """
    if after:
        last = _decoded(after)
        objects = [value for value in objects if _key(value) > last]
    if size <= 0 or len(objects) <= size:
        return objects, ""
    return objects[:size], base64.urlsafe_b64encode("/".join(_key(objects[size - 1])).encode()).decode()


def _key(value: Object) -> tuple[str, str]:
    return value["metadata"].get("namespace", ""), value["metadata"]["name"]


def _decoded(token: str) -> tuple[str, str]:
    try:
        namespace, _, name = base64.urlsafe_b64decode(token).decode().partition("/")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise bad_request("invalid continue token: continue key is not valid") from error
    return namespace, name
