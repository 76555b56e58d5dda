"""In-memory state machines of the services, with a clock and a fault script; they implement the ports."""
