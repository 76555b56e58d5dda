"""Whether the app can work: the services that it needs, and the runs of its timers."""
