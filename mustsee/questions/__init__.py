"""What any recipe does with a question: read it from a reply, check its text, number it."""
