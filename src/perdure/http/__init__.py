"""HTTP jobs: the request as a job, the guard over addresses, signatures, and what an answer means."""
