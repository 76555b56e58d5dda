"""GitHub: the fleet repository and its pull requests."""

from shared.adapters.github.client import github_auth
from shared.adapters.github.pulls import GitHubPullRequests
from shared.adapters.github.repository import GitHubRepository

__all__ = ["GitHubPullRequests", "GitHubRepository", "github_auth"]
