"""What Azure DevOps shows of people, repositories and pull requests, and how it refuses.

Source: github.com/MicrosoftDocs/vsts-rest-api-specs, specification/git/7.1, with its examples.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from localcloud.git.world.git_repository import GitRepository
from localcloud.git.world.people import PEOPLE
from localcloud.git.world.pull_requests import PullRecord
from localcloud.git.world.ref_changes import ZERO
from shared.cluster.failures.errors import Dependency

JsonObject = dict[str, Any]
ORGANIZATION = "local"


class DevOpsError(Exception):
    """A refusal: its status, its message, with the code at its beginning, and the key of its type."""

    def __init__(self, status: int, message: str, key: str) -> None:
        super().__init__(message)
        self.status, self.message, self.key = status, message, key

    @property
    def body(self) -> JsonObject:
        """The body of the answer."""
        return {
            "$id": "1",
            "innerException": None,
            "message": self.message,
            "typeName": f"Microsoft.TeamFoundation.Git.Server.{self.key}",
            "typeKey": self.key,
            "errorCode": 0,
            "eventId": 3000,
        }


@dataclass(frozen=True)
class DevOpsPlace:
    """A repository, the address of its organization, and the names of its project and its own."""

    repository: GitRepository
    organization: str
    project: str
    name: str
    pull_statuses: dict[int, list[JsonObject]] = field(default_factory=dict)
    """The statuses of each pull request, oldest first."""

    @property
    def id(self) -> str:
        """The id of the repository."""
        return str(uuid.UUID(int=self.repository.id))

    @property
    def api(self) -> str:
        """Where the REST API has it."""
        return f"{self.organization}/{self.project}/_apis/git/repositories/{self.id}"


def identity_id(login: str) -> str:
    """Return the id of somebody."""
    person = PEOPLE.get(login)
    return str(uuid.UUID(int=person.id) if person else uuid.uuid5(uuid.NAMESPACE_URL, login))


def identity_json(login: str) -> JsonObject:
    """Write a person."""
    person = PEOPLE.get(login)
    mail = sorted(person.addresses)[0] if person and person.addresses else f"{login}@example.com"
    return {"id": identity_id(login), "displayName": login, "uniqueName": mail}


def time_text(at: datetime) -> str:
    """Write a time, as .NET does: with seven digits after the second."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}0Z"


def repository_json(place: DevOpsPlace) -> JsonObject:
    """Write a repository."""
    return {
        "id": place.id,
        "name": place.name,
        "url": place.api,
        "project": {
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, place.project)),
            "name": place.project,
            "state": "wellFormed",
        },
        "defaultBranch": f"refs/heads/{place.repository.default_branch}",
        "remoteUrl": f"{place.organization}/{place.project}/_git/{place.name}",
    }


def pull_json(place: DevOpsPlace, record: PullRecord, *, with_merge: bool = False) -> JsonObject:
    """Write a pull request; ``with_merge``: with the test merge of an open one, or none yet."""
    status, merge = ("active", "queued") if record.state == "open" else ("abandoned", "notSet")
    commit = ""
    if record.merged:
        status, merge, commit = "completed", "succeeded", record.merge_commit
    elif record.state == "open" and with_merge:
        mergeable, tried = place.repository.pulls.merge(record)
        merge = "queued" if mergeable is None else "succeeded" if mergeable else "conflicts"
        commit = tried or ""
        if commit:
            place.repository.point(f"refs/pull/{record.number}/merge", commit)
    base = record.onto or _head(place, record.base)
    return {
        "repository": repository_json(place),
        "pullRequestId": record.number,
        "codeReviewId": record.number,
        "status": status,
        "createdBy": identity_json(record.author),
        "creationDate": time_text(record.created_at),
        "title": record.title,
        "description": record.body,
        "sourceRefName": f"refs/heads/{record.head}",
        "targetRefName": f"refs/heads/{record.base}",
        "mergeStatus": merge,
        "isDraft": False,
        **({"autoCompleteSetBy": identity_json(record.auto_merge)} if record.auto_merge else {}),
        "lastMergeSourceCommit": {"commitId": record.sha},
        "lastMergeTargetCommit": {"commitId": base},
        **({"lastMergeCommit": {"commitId": commit}} if commit else {}),
        **({"closedDate": time_text(record.merged_at)} if record.merged_at else {}),
        **({"forkSource": {"repository": {"name": f"{place.name}.fork"}}} if record.fork else {}),
        "reviewers": reviewers_json(place, record.number),
        "labels": labels_json(record),
        "url": f"{place.api}/pullRequests/{record.number}",
    }


def labels_json(record: PullRecord) -> list[JsonObject]:
    """Write the labels of a pull request."""
    return [{"id": identity_id(name), "name": name, "active": True} for name in record.labels]


VOTES = {"APPROVED": 10, "CHANGES_REQUESTED": -10}


def reviewers_json(place: DevOpsPlace, number: int) -> list[JsonObject]:
    """Write the reviewers with the vote that each has now; one that was reset is 0."""
    now = {
        review.author.login: VOTES.get(review.state, 0)
        for review in place.repository.pulls.reviews.of(number)
        if review.given in VOTES
    }
    return [{**identity_json(login), "vote": vote, "isRequired": False} for login, vote in now.items()]


def _head(place: DevOpsPlace, branch: str) -> str:
    try:
        return place.repository.head(branch)
    except Dependency:
        return ZERO
