"""The parts of a worker that repeat one store verb: promote, reap, prune, fire, forward."""
