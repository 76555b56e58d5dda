"""How a push becomes running clusters: intake, planner, worker, recovery, API. Effects only through ports."""
