"""The planner: confirm the head of the branch, plan it, hand its jobs over, report the commit status."""
