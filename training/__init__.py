"""Trains the embedded model: a small image-to-Markdown model, from rendered pages whose layout is known."""
