"""GitHub's GraphQL API as far as the adapter asks it: auto-merge, and the issues of a repository.

``graphql-core`` parses, validates and executes. The schema has the types, fields and arguments of GitHub's
public schema that are needed (docs.github.com/graphql/reference). "Forming calls with GraphQL": a refusal is
answered with 200 and ``errors``, each with a message, and one of GitHub's own with a type and a path.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from graphql import GraphQLError, GraphQLResolveInfo, build_schema, graphql_sync
from werkzeug.wrappers import Request, Response

from localcloud.common.clock import in_seconds
from localcloud.common.http_server import json_response
from localcloud.git.world.git_repository import GitRepository
from localcloud.git.world.issues import IssueRecord
from localcloud.git.world.people import OPERATOR, PEOPLE
from localcloud.github.wire.github_json import JsonObject, read_object
from shared.cluster.failures.errors import Dependency, InvalidManifest

PATH = "/graphql"
MOST = 100
"""docs.github.com/graphql/overview, "Node limit": a connection lists 1 to 100."""
_SCHEMA = build_schema("""
scalar DateTime
scalar GitObjectID
scalar URI
enum PullRequestMergeMethod { MERGE REBASE SQUASH }
enum IssueState { CLOSED OPEN }
enum IssueOrderField { COMMENTS CREATED_AT UPDATED_AT }
enum OrderDirection { ASC DESC }
input IssueOrder { direction: OrderDirection! field: IssueOrderField! }
input EnablePullRequestAutoMergeInput {
  authorEmail: String
  clientMutationId: String
  commitBody: String
  commitHeadline: String
  expectedHeadOid: GitObjectID
  mergeMethod: PullRequestMergeMethod = MERGE
  pullRequestId: ID!
}
type EnablePullRequestAutoMergePayload { clientMutationId: String }
interface Actor { login: String! url: URI! }
type User implements Actor { login: String! url: URI! databaseId: Int }
type Bot implements Actor { login: String! url: URI! databaseId: Int }
type Issue {
  number: Int!
  title: String!
  body: String!
  author: Actor
  createdAt: DateTime!
  lastEditedAt: DateTime
}
type IssueConnection { nodes: [Issue] totalCount: Int! }
type Repository {
  issues(
    after: String, before: String, first: Int, last: Int, orderBy: IssueOrder, states: [IssueState!]
  ): IssueConnection!
}
type Query { repository(followRenames: Boolean = true, name: String!, owner: String!): Repository }
type Mutation {
  enablePullRequestAutoMerge(input: EnablePullRequestAutoMergeInput!): EnablePullRequestAutoMergePayload
}
""")

Info = GraphQLResolveInfo[Any]
Find = Callable[[int | str], GitRepository | None]
"""Takes the number of a repository, or "owner/name"."""


class _Refusal(GraphQLError):
    """What GitHub refuses, with a type of its own."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def answer(request: Request, find: Find) -> Response:
    """Execute an operation, or say why not."""
    body = read_object(request)
    variables: Any = body.get("variables")
    done = graphql_sync(_SCHEMA, str(body.get("query") or ""), _Root(find), variable_values=variables)
    said: JsonObject = {"data": done.data}
    if done.errors:
        said["errors"] = [_written(error) for error in done.errors]
    return json_response(200, said)


def _written(error: GraphQLError) -> JsonObject:
    cause = error.original_error or error
    kind = {"type": cause.kind} if isinstance(cause, _Refusal) else {}
    return {**kind, **error.formatted}


class _Root:
    """The operations; the library calls what has the name of a field."""

    def __init__(self, find: Find) -> None:
        self._find = find

    def repository(self, _: Info, owner: str, name: str, **__: Any) -> _Repository:
        found = self._find(f"{owner}/{name}")
        if found is None:
            raise _Refusal(f"Could not resolve to a Repository with the name '{owner}/{name}'.", "NOT_FOUND")
        return _Repository(found)

    def enablePullRequestAutoMerge(self, _: Info, input: JsonObject) -> JsonObject:
        node = re.fullmatch(r"PR_(\d+)_(\d+)", str(input["pullRequestId"]))
        repository = self._find(int(node[1])) if node else None
        if node is None or repository is None:
            raise _Refusal(f"Could not resolve to a node with the id '{input['pullRequestId']}'", "NOT_FOUND")
        method, head = str(input["mergeMethod"]).lower(), str(input.get("expectedHeadOid") or "")
        try:
            repository.pulls.enable_auto_merge(int(node[2]), method, head)
        except Dependency as error:
            raise _Refusal(str(error), "NOT_FOUND") from error
        except InvalidManifest as error:
            raise _Refusal(str(error), "UNPROCESSABLE") from error
        return {"clientMutationId": input.get("clientMutationId")}


class _Repository:
    def __init__(self, git: GitRepository) -> None:
        self._git = git

    def issues(self, _: Info, first: int = 0, **given: Any) -> JsonObject:
        if not 1 <= first <= MOST:
            raise _Refusal(
                "You must provide a `first` value from 1 to 100 to paginate the connection",
                "MISSING_PAGINATION_BOUNDARIES",
            )
        if (given.get("states"), given.get("orderBy")) != (
            ["OPEN"],
            {"field": "CREATED_AT", "direction": "DESC"},
        ):
            raise _Refusal("the local GitHub lists open issues alone, newest first", "UNPROCESSABLE")
        found = self._git.pulls.issues.listed()
        return {"nodes": [_issue(issue) for issue in found[:first]], "totalCount": len(found)}


def _issue(record: IssueRecord) -> JsonObject:
    kind = "Bot" if record.author.endswith("[bot]") else "User"
    account = PEOPLE.get(record.author, OPERATOR).id
    author = {"__typename": kind, "login": record.author.removesuffix("[bot]"), "databaseId": account}
    return {
        "number": record.number,
        "title": record.title,
        "body": record.body,
        "author": author if record.author else None,
        "createdAt": in_seconds(record.created_at),
        "lastEditedAt": in_seconds(record.edited_at) if record.edited_at else None,
    }
