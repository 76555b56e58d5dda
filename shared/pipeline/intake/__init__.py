"""Webhook deliveries: check one, and queue the plan request that it asks for."""
