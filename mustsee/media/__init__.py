"""What a film holds: its files, pictures, sound and lines, decoded once."""
