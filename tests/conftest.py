"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# No example is timed: a machine that is busy with something else has not found a defect.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
