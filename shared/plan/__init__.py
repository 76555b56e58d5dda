"""From resolved and recorded clusters to a plan: actions, guards, differences, number of Azure calls."""
