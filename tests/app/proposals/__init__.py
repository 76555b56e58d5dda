"""Proposals: pull requests about drift."""
