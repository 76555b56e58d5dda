"""The pins of a plan: their form, their branches, the way back, and how far clusters are behind."""
