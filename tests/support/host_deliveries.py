"""Deliveries of each git host, as its own documents record them, for the repository example/fleet.

The catalogue asks each host for a push and a pull request, and compares ``HOSTS`` with ``READERS``.

Sources of the payloads, without the parts that are not read: GitLab's page on webhook events (push events,
merge request events), docs.gitlab.com/user/project/integrations/webhook_events; Microsoft's page on events
(git.push, git.pullrequest.created), learn.microsoft.com/azure/devops/service-hooks/events. The library of
Standard Webhooks signs for GitLab.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from standardwebhooks.webhooks import Webhook

from shared.app.intake import azure_devops_webhook, github_webhook, gitlab_webhook
from shared.app.intake.webhook import Delivery, Reader
from tests.support.webhook_deliveries import COMMIT, sign

KEY = "whsec_" + base64.b64encode(b"a signing token of 32 bytes long").decode()
OTHER_KEY = "whsec_" + base64.b64encode(b"another signing token, 32 bytes.").decode()
GONE = "0" * 40

GITHUB_PUSH: dict[str, Any] = {
    "ref": "refs/heads/main",
    "after": COMMIT,
    "deleted": False,
    "repository": {"id": 1, "full_name": "example/fleet"},
}
GITHUB_PULL: dict[str, Any] = {
    "action": "opened",
    "number": 7,
    "pull_request": {"head": {"sha": COMMIT, "ref": "topic"}, "base": {"ref": "main"}},
    "repository": {"id": 1, "full_name": "example/fleet"},
}
GITLAB_PROJECT = {
    "id": 1,
    "name": "Fleet",
    "web_url": "http://example.com/example/fleet",
    "git_http_url": "http://example.com/example/fleet.git",
    "path_with_namespace": "example/fleet",
    "default_branch": "main",
}
GITLAB_PUSH: dict[str, Any] = {
    "object_kind": "push",
    "event_name": "push",
    "before": "95790bf891e76fee5e1747ab589903a6a1f80f22",
    "after": COMMIT,
    "ref": "refs/heads/main",
    "ref_protected": True,
    "checkout_sha": COMMIT,
    "user_id": 4,
    "project_id": 1,
    "project": GITLAB_PROJECT,
    "commits": [{"id": COMMIT, "message": "fixed readme", "timestamp": "2012-01-03T23:36:29+02:00"}],
    "total_commits_count": 1,
}
GITLAB_PULL: dict[str, Any] = {
    "object_kind": "merge_request",
    "event_type": "merge_request",
    "user": {"id": 1, "username": "root"},
    "project": GITLAB_PROJECT,
    "object_attributes": {
        "id": 99,
        "iid": 7,
        "target_branch": "main",
        "source_branch": "ms-viewport",
        "source_project_id": 14,
        "target_project_id": 1,
        "state": "opened",
        "merge_status": "unchecked",
        "last_commit": {"id": COMMIT, "message": "fixed readme"},
        "action": "open",
        "detailed_merge_status": "mergeable",
    },
    "changes": {"draft": {"previous": True, "current": False}},
}
DEVOPS_REPOSITORY = {
    "id": str(UUID(int=1)),
    "name": "fleet",
    "project": {"id": "6ce954b1-ce1f-45d1-b94d-e6bf2464ba2c", "name": "example", "state": "wellFormed"},
    "defaultBranch": "refs/heads/main",
    "remoteUrl": "https://dev.azure.com/contoso/example/_git/fleet",
}
DEVOPS_CONTAINERS = {"collection": {"id": "c12d0eb8-e382-443b-9f9c-c52cba5014c2"}}
DEVOPS_PUSH: dict[str, Any] = {
    "id": "03c164c2-8912-4d5e-8009-3707d5f83734",
    "eventType": "git.push",
    "publisherId": "tfs",
    "resource": {
        "commits": [{"commitId": COMMIT, "comment": "Fixed bug in web.config file"}],
        "refUpdates": [
            {
                "name": "refs/heads/main",
                "oldObjectId": "aad331d8d3b131fa9ae03cf5e53965b51942618a",
                "newObjectId": COMMIT,
            }
        ],
        "repository": DEVOPS_REPOSITORY,
        "pushId": 14,
        "date": "2014-05-02T19:17:13.3309587Z",
    },
    "resourceVersion": "1.0",
    "resourceContainers": DEVOPS_CONTAINERS,
    "createdDate": "2016-09-19T13:03:27.0379153Z",
}
DEVOPS_PULL: dict[str, Any] = {
    "id": "2ab4e3d3-b7a6-425e-92b1-5a9982c1269e",
    "eventType": "git.pullrequest.created",
    "publisherId": "tfs",
    "resource": {
        "repository": DEVOPS_REPOSITORY,
        "pullRequestId": 7,
        "status": "active",
        "sourceRefName": "refs/heads/mytopic",
        "targetRefName": "refs/heads/main",
        "mergeStatus": "succeeded",
        "lastMergeSourceCommit": {"commitId": COMMIT},
        "lastMergeCommit": {"commitId": "eef717f69257a6333f221566c1c987dc94cc0d72"},
        "reviewers": [{"vote": 0, "id": "2ea2d095-48f9-4cd6-9966-62f6f574096c", "isContainer": True}],
    },
    "resourceVersion": "1.0",
    "resourceContainers": DEVOPS_CONTAINERS,
    "createdDate": "2016-09-19T13:03:27.2879096Z",
}


@dataclass(frozen=True)
class Host:
    """A host: what reads its deliveries, its payloads, where these have their parts, and how they are sent.

    ``pull`` is empty for a host without pull requests. ``headers`` makes those of an event from the body, a
    secret and the id of the delivery.
    """

    read: Reader
    secrets: tuple[str, str]
    wrong: str
    push: Mapping[str, Any]
    pull: Mapping[str, Any]
    events: tuple[str, str]
    paths: Mapping[str, str]
    headers: Callable[[bytes, str, str, str], dict[str, str]]
    signs: bool = True

    def sent(
        self, payload: Mapping[str, Any] | bytes, *, event: str = "", secret: str = "", identity: str = "d1"
    ) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of a delivery."""
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        kind = event or self.events[0]
        return self.headers(body, secret or self.secrets[0], kind, identity), body

    def received(self, payload: Mapping[str, Any] | bytes, **given: str) -> Delivery:
        """Return what a delivery is read as."""
        headers, body = self.sent(payload, **given)
        return self.read(headers, body, secrets=self.secrets, repository="example/fleet", branch="main")

    def changed(self, kind: str, part: str, value: Any) -> dict[str, Any]:
        """Return the payload of a push or a pull request with another value of a part."""
        payload: dict[str, Any] = deepcopy(dict(self.push if kind == "push" else self.pull))
        place: Any = payload
        *parents, last = self.paths[part].split("/")
        for name in parents:
            place = place[int(name) if name.isdecimal() else name]
        place[last] = value
        return payload


def _of_github(body: bytes, secret: str, event: str, identity: str) -> dict[str, str]:
    signature = sign(body, secret)
    return {"X-Hub-Signature-256": signature, "X-GitHub-Event": event, "X-GitHub-Delivery": identity}


def _of_gitlab(body: bytes, secret: str, event: str, identity: str) -> dict[str, str]:
    given = {"X-Gitlab-Event": event, "Idempotency-Key": identity}
    if not secret.startswith("whsec_"):
        return {**given, "X-Gitlab-Token": secret}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    text = body.decode(errors="surrogateescape") if body.isascii() else ""
    signature = Webhook(secret).sign(identity, at, text)
    stamp = str(int(at.timestamp()))
    return {**given, "webhook-id": identity, "webhook-timestamp": stamp, "webhook-signature": signature}


def _of_azure_devops(body: bytes, secret: str, event: str, identity: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"roadstead:{secret}".encode()).decode()}


HOSTS: Mapping[str, Host] = {
    "github": Host(
        github_webhook.read_delivery,
        ("new", "old"),
        "wrong",
        GITHUB_PUSH,
        GITHUB_PULL,
        ("push", "pull_request"),
        {
            "repository": "repository/full_name",
            "ref": "ref",
            "commit": "after",
            "base": "pull_request/base/ref",
            "number": "number",
        },
        _of_github,
    ),
    "gitlab": Host(
        gitlab_webhook.read_delivery,
        (KEY, "the older token of a webhook"),
        OTHER_KEY,
        GITLAB_PUSH,
        GITLAB_PULL,
        ("Push Hook", "Merge Request Hook"),
        {
            "repository": "project/path_with_namespace",
            "ref": "ref",
            "commit": "after",
            "base": "object_attributes/target_branch",
            "number": "object_attributes/iid",
        },
        _of_gitlab,
    ),
    "azure-devops": Host(
        azure_devops_webhook.read_delivery,
        ("new", "old"),
        "wrong",
        DEVOPS_PUSH,
        DEVOPS_PULL,
        ("git.push", "git.pullrequest.created"),
        {
            "repository": "resource/repository/name",
            "ref": "resource/refUpdates/0/name",
            "commit": "resource/refUpdates/0/newObjectId",
            "base": "resource/targetRefName",
            "number": "resource/pullRequestId",
        },
        _of_azure_devops,
        signs=False,
    ),
}
