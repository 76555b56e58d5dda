"""How a push becomes running clusters: intake, planner, worker, recovery, API. Effects go through ports."""
