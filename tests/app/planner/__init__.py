"""From a push to a plan: the head of the branch, statuses, approvals, what a plan costs."""
