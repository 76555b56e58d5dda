"""GitHub: repositories, pull requests, commit statuses, checks and webhooks."""
