"""Pages in the browser: the studio, the ballot, and the door that both stand behind."""
