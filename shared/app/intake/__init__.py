"""Webhook deliveries: verify one, and queue its plan request."""
