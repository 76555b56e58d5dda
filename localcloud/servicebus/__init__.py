"""A Service Bus namespace with queues."""
