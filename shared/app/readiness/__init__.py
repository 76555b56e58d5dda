"""Readings of clusters before an upgrade: pods, budgets, webhooks and APIs, which no check reads."""
