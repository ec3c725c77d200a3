"""Whether a question needs the video: filters, the models that look or guess, and repair."""
