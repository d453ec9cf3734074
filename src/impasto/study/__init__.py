"""Studies with people: who sees what, what they chose, and what follows from it."""
