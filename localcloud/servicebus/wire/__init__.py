"""How Service Bus speaks: AMQP 1.0 over TCP, for the real ``azure-servicebus`` client."""
