"""Which clusters of a plan start now: its rollout, the checks of gates, and the plan of only those."""
