"""Many jobs, one folder: each is made once, by this process or by the workers of a cluster.

Nothing here loads torch until a worker is made, so that what is wrong with a list of jobs is said
at once, and a batch that is done already ends at once.
"""
