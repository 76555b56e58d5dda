"""What happens to fields that differ from git: who changed them, the policy, and the proposal to git."""
