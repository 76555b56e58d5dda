"""GitHub's GraphQL API as far as PyGithub's mutations need it: one mutation with one input.

Source: docs.github.com/graphql/reference (the public schema), and "Forming calls with GraphQL": a refusal is
answered with 200 and ``errors``, each with a type, a path and a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response
from localcloud.github.wire.github_json import read_object
from localcloud.github.world.git_repository import GitRepository
from shared.cluster.failures.errors import Dependency, InvalidManifest

PATH = "/graphql"
ENABLE = "enablePullRequestAutoMerge"
INPUT = {
    *("authorEmail", "clientMutationId", "commitBody", "commitHeadline"),
    *("expectedHeadOid", "mergeMethod", "pullRequestId"),
}
"""The fields of EnablePullRequestAutoMergeInput, of which ``pullRequestId`` is required."""
METHODS = ("MERGE", "REBASE", "SQUASH")
"""The values of PullRequestMergeMethod; the first one is the default."""
_MUTATION = re.compile(r"mutation \w+\(\$input: (\w+)!\) \{ (\w+)\(input: \$input\) \{ \w+ \} \}")

Find = Callable[[int], GitRepository | None]
"""Takes the number of a repository."""


def answer(request: Request, find: Find) -> Response:
    """Enable auto-merge, or say why not; anything else than this mutation is refused."""
    body = read_object(request)
    found = _MUTATION.fullmatch(str(body.get("query") or ""))
    given: Any = (body.get("variables") or {}).get("input")
    if found is None or found.groups() != (f"{ENABLE[:1].upper()}{ENABLE[1:]}Input", ENABLE):
        return _refused(f"the local GitHub has no other operation than {ENABLE}")
    wrong = sorted({*given} - INPUT) if isinstance(given, dict) else ["input"]
    method = "" if wrong else str(given.get("mergeMethod", METHODS[0]))
    if wrong or method not in METHODS or "pullRequestId" not in given:
        return _refused(f"Variable $input of type {found[1]}! was provided invalid value: {wrong}")
    node = re.fullmatch(r"PR_(\d+)_(\d+)", str(given["pullRequestId"]))
    repository = find(int(node[1])) if node else None
    if node is None or repository is None:
        return _refused(f"Could not resolve to a node with the id '{given['pullRequestId']}'", "NOT_FOUND")
    try:
        head = str(given.get("expectedHeadOid") or "")
        repository.pulls.enable_auto_merge(int(node[2]), method.lower(), head)
    except Dependency as error:
        return _refused(str(error), "NOT_FOUND")
    except InvalidManifest as error:
        return _refused(str(error), "UNPROCESSABLE")
    return json_response(200, {"data": {ENABLE: {"clientMutationId": given.get("clientMutationId")}}})


def _refused(message: str, kind: str = "") -> Response:
    error = {"message": message, **({"type": kind, "path": [ENABLE]} if kind else {})}
    return json_response(200, {"data": {ENABLE: None}, "errors": [error]})
