"""`hsdkit serve`: documents over HTTP. Uploads, jobs, limits, metrics and a page for the browser; parsing itself is
`hsdkit.parallel`'s. Needs the extra `serve`, all but `limits`, which the help of the command shows.
"""
