"""Who may do what: users, managed identities, and roles."""
