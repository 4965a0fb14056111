"""Decoupled speculative verification: matching, prefix tree, acceptance walk, ragged cache, budget, and the loop."""
