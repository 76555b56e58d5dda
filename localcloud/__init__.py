"""A cloud on one machine, never deployed: worlds (what a service does) and servers (how it speaks)."""
