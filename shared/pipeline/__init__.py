"""The story of a push, told in ports: intake, planning, advance, steps, sweep, report."""
