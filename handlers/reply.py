"""Replies to HTTP requests."""

from __future__ import annotations

import json

import azure.functions as func

from shared.app.api.views.plan_page import POLICY
from shared.app.http_result import HttpResult


def html(status: int, text: str) -> func.HttpResponse:
    """Return a page: with a policy that allows no script, stored nowhere, and shown in no other site."""
    headers = {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
    return func.HttpResponse(text, status_code=status, mimetype="text/html", charset="utf-8", headers=headers)


def reply(result: HttpResult) -> func.HttpResponse:
    """Return a result as JSON, with a newline at its end for terminals."""
    body = json.dumps(result.body) + "\n"
    return func.HttpResponse(body, status_code=result.status, mimetype="application/json")
