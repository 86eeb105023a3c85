"""What a policy and a queue would do under a load, in virtual time: the real decisions, with heaps for a store."""
