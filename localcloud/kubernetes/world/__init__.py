"""What a Kubernetes API does: objects, their rules, server-side apply, and the built-in controllers."""
