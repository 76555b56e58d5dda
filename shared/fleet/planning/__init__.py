"""From resolved and recorded clusters to a plan: actions, guards, differences, cost in calls."""
