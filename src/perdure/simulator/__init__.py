"""A fleet in virtual time: the real decisions, policies and fairness, without a store or a worker."""
