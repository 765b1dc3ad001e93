"""What writes the sample data: a grammar, pages, files, and the facts planted in them."""
