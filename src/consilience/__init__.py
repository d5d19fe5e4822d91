"""Learning from several views of the same things."""
