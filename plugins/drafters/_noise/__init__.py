"""What `drafter=noise` does to pages and drafts, for studies of how far a drafter may be wrong (paper, Fig. 3).

Pure functions of (input, strengths, random numbers): `image` before drafting, `layout` and `recognition` after it.
"""
