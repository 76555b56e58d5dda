"""GitLab, a git host: its REST API by python-gitlab, and its repositories by git."""

from shared.adapters.gitlab.host import GitLabHost

__all__ = ["GitLabHost"]
