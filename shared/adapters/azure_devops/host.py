"""The repository of a fleet on Azure DevOps.

Files, commits and branches are git's: one fetch brings what thousands of reads need, where the REST API takes
a call for each. Pull requests, votes, statuses and policies are the REST API's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from azure.core.credentials import TokenCredential

from shared.adapters.answers import moment
from shared.adapters.azure_devops.branches import DevOpsBranches
from shared.adapters.azure_devops.client import DevOpsClient, RepositoryAddress, refused
from shared.adapters.azure_devops.pulls import HEADS, DevOpsPulls
from shared.adapters.azure_devops.reviews import DevOpsReviews
from shared.adapters.git.transfer import HttpsGitServer
from shared.cluster.failures.errors import Dependency, InvalidManifest, ReconcileError, Unauthorized
from shared.frozen import replace
from shared.ports.git_host import BranchHead, Capability, CommitStatus, HookDelivery


class DevOpsGit(HttpsGitServer):
    """Git of one repository, over HTTPS; ``authorization`` returns the header that signs in, a bearer token.

    Source: learn.microsoft.com/azure/devops/repos/git/auth-overview.
    """

    def __init__(self, url: str, authorization: Callable[[], str]) -> None:
        super().__init__(url, "", "")
        self._authorization = authorization

    def _http_request(
        self,
        url: str,
        headers: dict[str, str] | None = None,
        data: bytes | Iterator[bytes] | None = None,
        raise_for_status: bool = True,
    ) -> tuple[Any, Callable[[int], bytes]]:
        signed = {**(headers or {}), "Authorization": self._authorization()}
        return super()._http_request(url, signed, data, raise_for_status)

    def refused(self, status: int, headers: Mapping[str, str]) -> ReconcileError:
        """Return what an answer means that is not 200."""
        return refused(status, headers, f"Azure DevOps answered {status} to git")


CAPABILITIES = frozenset(
    {
        Capability.STATUSES,
        Capability.PULLS,
        Capability.CHECKS,
        Capability.REVIEWS,
        Capability.PROPOSALS,
        Capability.AUTO_MERGE,
        Capability.WEBHOOKS,
    }
)
_STATES: Mapping[str, str] = {
    "pending": "pending",
    "success": "succeeded",
    "failure": "failed",
    "error": "error",
}
_DESCRIPTION = 140
"""Characters, as the port has them; no page of Microsoft states a limit of a status."""
_RECEIVER = "/api/webhook"
GENRE = "roadstead"


class AzureDevOpsHost(DevOpsPulls, DevOpsReviews, DevOpsBranches):
    """The repository at https://dev.azure.com/ORG/PROJECT/_git/REPOSITORY, read as the app's identity."""

    name, credential = "Azure DevOps", ""
    to_read_another = "give the identity of the app the right Read in the project of the repository"

    def __init__(self, url: str, credential: TokenCredential) -> None:
        address = RepositoryAddress.of(url)
        self._client, self._identity = DevOpsClient(address, credential), credential
        super().__init__(address.url, server=DevOpsGit(address.url, self._client.authorization))

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Everything but check runs and issues."""
        return CAPABILITIES

    def _new_other(self, repository: str) -> AzureDevOpsHost:
        """Return "project/repository" of the organization, or what has this path on the server.

        Several organizations have one server, so a path with an organization is never that of another one.
        """
        here = urlsplit(self._client.address.organization)
        before, _, name = repository.replace("/_git/", "/").rpartition("/")
        organization, _, project = before.rpartition("/")
        if "/_git/" in repository and before == here.path.strip("/"):  # the project is called as it is
            organization, project = before, name
        place = f"/{organization}" if organization else here.path
        url = f"{here.scheme}://{here.netloc}{place}/{project or name}/_git/{name}"
        return AzureDevOpsHost(url, self._identity)

    def deliveries(self) -> Sequence[HookDelivery] | None:
        """Return none: each subscription has its own list; raise Dependency for one that is not enabled.

        None for an identity that may not see subscriptions, as of a usual user. Source: the states of a
        subscription, "SubscriptionStatus" in MicrosoftDocs/vsts-rest-api-specs, hooks.
        """
        url = f"{self._client.address.organization}/_apis/hooks/subscriptions"
        try:
            with self._client.calling("no service hooks") as call:
                own = call("GET", "")["id"]
                found = call("GET", url, query={"publisherId": "tfs", "consumerId": "webHooks"})["value"]
                states = {
                    str(subscription["eventType"]): str(subscription["status"])
                    for subscription in found
                    if subscription["publisherInputs"].get("repository") == own
                    and str(subscription["consumerInputs"].get("url")).endswith(_RECEIVER)
                }
        except Unauthorized:
            return None
        stopped = {event: state for event, state in states.items() if state != "enabled"}
        if stopped:
            said = ", ".join(f"{event} is {state}" for event, state in stopped.items())
            raise Dependency(
                f"Azure DevOps delivers not every event, after failures or by somebody's act: {said}"
            )
        return ()

    def close(self) -> None:
        """Close the connections, and delete the folders."""
        super().close()
        self._client.close()

    def read_head(self, branch: str) -> BranchHead:
        """Return the commit that the branch points to, with the id of the repository: two calls."""
        read = super().read_head(branch)
        # Afterwards: a name that passes to another repository meanwhile then shows the other id.
        with self._client.calling("no such repository") as call:
            return replace(read, repository=UUID(call("GET", "")["id"]).int)

    def pushed_at(self, branch: str, commit: str) -> datetime | None:
        """Return the time of the newest push of a branch, None where it brought another commit: one call.

        Source: "Pushes - List" in MicrosoftDocs/vsts-rest-api-specs, git/7.1: the newest push is the first.
        """
        ref = f"{HEADS}{branch}"
        query = {"searchCriteria.refName": ref, "searchCriteria.includeRefUpdates": "true", "$top": 1}
        with self._client.calling(f"no branch {branch}") as call:
            for push in call("GET", "/pushes", query=query)["value"]:
                moved = [update["newObjectId"] for update in push["refUpdates"] if update["name"] == ref]
                if moved == [commit]:
                    return moment(push["date"]).replace(microsecond=0)
        return None

    def _first(self, _head: str) -> int:
        return 0  # what stands for an id on a server without one

    def _is_elsewhere(self, sha: str) -> bool:
        try:
            with self._client.calling(f"no commit {sha}") as call:
                call("GET", f"/commits/{sha}", query={"changeCount": 0})
        except Dependency:
            return False
        return True

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Create the status of a commit, and the same of the pull request that it is about.

        Branch policies ask for a status of a pull request, and not for one of its commits
        (learn.microsoft.com/azure/devops/repos/git/pull-request-status).
        """
        if status.state not in _STATES:
            raise InvalidManifest(f"the state of a status is one of {', '.join(_STATES)}")
        if len(status.description) > _DESCRIPTION:
            raise InvalidManifest(f"the description is too long (maximum is {_DESCRIPTION} characters)")
        if status.target_url and not status.target_url.startswith(("http://", "https://")):
            raise InvalidManifest("the target_url of a status must use http or https")
        genre, _, name = status.context.rpartition("/")
        body = {
            "state": _STATES[status.state],
            "description": status.description,
            "context": {"genre": genre or GENRE, "name": name},
            **({"targetUrl": status.target_url} if status.target_url else {}),
        }
        with self._client.calling(f"no commit {commit}") as call:
            call("POST", f"/commits/{commit}/statuses", body=body)
        if status.pull:
            with self._client.calling(f"no pull request {status.pull}") as call:
                call("POST", f"/pullRequests/{status.pull}/statuses", body=body)
