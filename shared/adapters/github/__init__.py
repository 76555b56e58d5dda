"""GitHub, a git host: the fleet repository and its pull requests."""

from shared.adapters.github.client import github_auth
from shared.adapters.github.host import GitHubHost

__all__ = ["GitHubHost", "github_auth"]
