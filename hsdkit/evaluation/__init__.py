"""Quality on a benchmark and efficiency beside it, from the same pages in the same run; a run that
stopped is taken up again."""
