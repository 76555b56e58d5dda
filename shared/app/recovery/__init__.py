"""Recovery, started by timers and dead-letter queues: missed heads, overdue messages, retention."""
