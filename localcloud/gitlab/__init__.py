"""GitLab: projects with merge requests, on real bare repositories; see README.md."""
