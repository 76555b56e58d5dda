"""Notifications: facts about clusters and the fleet, who is told of which, and in how many messages. Pure."""
