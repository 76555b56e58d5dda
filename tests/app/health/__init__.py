"""The services that answer, and the timers that run."""
