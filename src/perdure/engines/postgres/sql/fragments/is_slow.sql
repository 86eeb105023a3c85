-- Whether the statement has taken longer so far than finding the jobs of a claim should take; see claim_ranges.py.
/*+ took */ > (5000 + (10 * :count::bigint))
