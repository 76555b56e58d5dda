"""The channels of notifications: HTTPS for Slack, Teams and webhooks, Apprise for e-mail and others."""

from shared.adapters.channels.channels import AppChannels

__all__ = ["AppChannels"]
