"""The page on which people vote."""
