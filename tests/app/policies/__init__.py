"""Assignments of Azure Policy to clusters."""
