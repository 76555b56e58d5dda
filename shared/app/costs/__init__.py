"""Costs: the list prices of a plan and of each cluster, what Azure has billed, and the digest of a week."""
