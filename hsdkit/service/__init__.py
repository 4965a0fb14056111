"""`hsdkit serve`: documents over HTTP. Uploads, jobs, limits, metrics and a page for the browser; parsing itself is
`hsdkit.parallel`'s. Needs the extra `serve`; only `app`, `server`, `upload` and `metrics` import what it installs.
"""
