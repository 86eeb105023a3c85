"""What Perdure needs of the process and the machine: clocks, locks, limits and signals between threads."""
