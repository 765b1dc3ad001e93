"""What is cut inside the main part: lists of links, captions, labels, repeated texts."""
