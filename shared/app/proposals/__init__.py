"""Proposals: pull requests that take into git what somebody changed in Azure, or what is proven elsewhere."""
