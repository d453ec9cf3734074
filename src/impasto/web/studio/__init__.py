"""The studio: paint in the browser; the same by HTTP for programs."""
