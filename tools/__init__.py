"""Checks of this repository that no library has; nothing here is deployed."""
