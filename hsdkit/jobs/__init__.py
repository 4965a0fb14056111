"""Jobs: any number of documents, page by page, by one process or several; what is finished is kept. See `Job`."""

from hsdkit.jobs.inputs import Input, read_inputs
from hsdkit.jobs.job import Job
from hsdkit.jobs.outcome import FAILURES, Failure, Progress, Watcher
from hsdkit.jobs.work import Parse, work

__all__ = ["FAILURES", "Failure", "Input", "Job", "Parse", "Progress", "Watcher", "read_inputs", "work"]
