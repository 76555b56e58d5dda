"""Settings of every test."""

from __future__ import annotations

import signal

from hypothesis import settings

# Examples have no deadline: a busy machine is not a defect.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A shell that starts the tests in the background has them, and every process below, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
