"""What a step asks before it writes, and a job before it calls a cluster Ready."""
