"""A pull request that changes what Flux applies says so in its comment, by change and not by cluster."""

from __future__ import annotations

import pytest

from tests.support.proposals import Repo
from tests.support.staged_fleets import DEV, NAMESPACE, PROD, ready_fleet, staged, with_file

BAD = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: Apps_Bad}\n"


@pytest.fixture
def repo() -> Repo:
    return Repo(ready_fleet())


def comment_on(repo: Repo, files: dict[str, bytes]) -> str:
    """Return the comment on a pull request with these files."""
    git = repo.cloud.repository
    git.reset(git.head("main"), "topic")
    head = git.push(files, branch="topic")
    number = git.pulls.open("A change", "topic", "main").number
    repo.announce(number, head, "opened")
    repo.cloud.run()
    (body,) = repo.comments(number)
    return body


def test_what_flux_would_apply_is_shown_once_for_all_clusters(repo: Repo) -> None:
    body = comment_on(repo, with_file("monitoring.yaml", NAMESPACE))
    assert f"Flux on {len(DEV) + len(PROD)} clusters of development and production" in body
    assert "+ Namespace monitoring" in body
    assert "built with kustomize" in body


def test_what_is_invalid_is_refused_with_its_place(repo: Repo) -> None:
    body = comment_on(repo, with_file("bad.yaml", BAD))
    assert "platform/bad.yaml:3" in body
    assert "Apps\\_Bad" in body or "Apps_Bad" in body
    assert "7 refused" in body


def test_what_destroys_needs_an_approval_and_says_what_is_lost(repo: Repo) -> None:
    files = {path: content for path, content in staged().items() if path != "platform/namespaces.yaml"}
    body = comment_on(repo, files | {"platform/monitoring.yaml": NAMESPACE})
    assert "needs approval" in body
    assert "Namespace platform" in body
