"""Errors by what happens next, their retries, their remedies, and the problem of a fleet. Pure."""
