"""Messages of the queues: their forms, envelopes, and what follows from them."""
