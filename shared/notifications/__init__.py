"""Notifications about clusters and the fleet: who gets which, and in how many messages. Pure."""
