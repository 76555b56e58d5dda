"""Repositories on disk or in memory, and what a host stores for them: pull requests, reviews, statuses."""
