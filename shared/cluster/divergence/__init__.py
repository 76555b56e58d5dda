"""Where a cluster is not as git has it: drift, verification after a change, tries."""
