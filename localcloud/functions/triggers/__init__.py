"""What starts a function: HTTP, timers, and queues of Service Bus with and without sessions."""
