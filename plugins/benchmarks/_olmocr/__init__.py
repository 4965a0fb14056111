"""The unit tests of olmOCR-Bench: each looks for one fact in the Markdown of a page.

The rules are those of `olmocr.bench` (github.com/allenai/olmocr, March 2026).
"""
