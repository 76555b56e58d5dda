"""What is not resolved again: clusters that equal their record, and specs that clusters have in common."""
