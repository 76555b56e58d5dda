"""What windows and freezes hold besides the changes of a rollout: other items of plans, corrections. Pure."""
