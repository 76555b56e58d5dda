"""Replies to HTTP requests."""

from __future__ import annotations

import json

import azure.functions as func

from shared.app.http_result import HttpResult


def reply(result: HttpResult) -> func.HttpResponse:
    """Return a result as JSON, with a newline at its end for terminals."""
    body = json.dumps(result.body) + "\n"
    return func.HttpResponse(body, status_code=result.status, mimetype="application/json")
