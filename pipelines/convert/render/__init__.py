"""The chosen nodes of a page to text with light Markdown."""
