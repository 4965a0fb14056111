"""Studies: many configurations measured on the same pages (`sweep`), shown (`report`), and told apart (`compare`)."""
