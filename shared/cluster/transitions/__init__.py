"""What becomes of a record: by a commit, a step's outcome, a comparison with Azure, or a lease. Pure."""
