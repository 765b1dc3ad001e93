"""What of a page is its main text: cuts by tag and by words, narrowing, link lists, labels."""
