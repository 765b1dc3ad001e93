"""The ground floor: what a batch of documents is, what a stage may do to it, and errors."""
