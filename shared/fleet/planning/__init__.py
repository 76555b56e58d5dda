"""What a commit asks for against what is recorded: the plan, its holds, and the fields that differ. Pure."""
