"""Whether the apps can do their work: what a reading says, and what an examination of each finds."""
