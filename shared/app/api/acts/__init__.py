"""What operators ask for: approvals, replays, takeovers, comparisons, imports and tests of routes."""
