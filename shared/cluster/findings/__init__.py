"""What sweeps and checks find of a cluster that no job works on, and the conditions that say it. Pure."""
