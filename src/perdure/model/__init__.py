"""The pure heart: what jobs are, which states they can be in, and what follows when work fails."""
