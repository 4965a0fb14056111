"""Output formats in which a page is more than Markdown: records or tags that carry boxes. One file a format."""
