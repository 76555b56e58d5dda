"""Channels of notifications: Teams, as its workflows take messages."""
