"""What a video holds: its files, pictures, sound and lines, decoded once."""
