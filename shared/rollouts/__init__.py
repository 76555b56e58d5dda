"""Rollouts: what one commit does to the clusters that it changes, in stages. Pure."""
