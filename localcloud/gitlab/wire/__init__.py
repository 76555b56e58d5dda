"""How GitLab is reached: REST and GraphQL, git over HTTP, and webhooks."""
