"""Model classes of our own for checkpoints that ship their code; read when a target of theirs loads."""
