"""Settings of every test."""

from __future__ import annotations

from hypothesis import settings

# Examples have no deadline: a busy machine is not a defect.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
