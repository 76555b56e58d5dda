"""JSON replies to HTTP requests."""

from __future__ import annotations

import json
from typing import Any

import azure.functions as func


def json_reply(status: int, body: Any) -> func.HttpResponse:
    """Return a reply with a JSON body, one trailing newline for terminals."""
    return func.HttpResponse(json.dumps(body) + "\n", status_code=status, mimetype="application/json")
