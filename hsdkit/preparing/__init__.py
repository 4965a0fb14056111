"""What happens to a page before a model sees it: opened, rendered, drafted; in this process or in processes apart."""
