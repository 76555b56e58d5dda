"""What clusters cost: what a plan changes of it, what is known of each, and what Azure has billed."""
