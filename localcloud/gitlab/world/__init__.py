"""What GitLab does: its rules for merge requests, notes, issues and statuses, on the repositories of git."""
