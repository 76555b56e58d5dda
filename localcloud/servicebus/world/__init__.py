"""What Service Bus does: sessions, peek-lock, scheduled messages, duplicate detection, dead letters."""
