"""What texts, tables and words are compared by; pure functions for benchmarks of any origin. Their libraries come with
the extra `eval` and are imported when a metric is computed."""
