"""What was observed: decisions, rankings, trajectories. Frozen, and checked when made."""
