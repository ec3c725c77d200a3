"""Cleaning of training sets: rows that can be answered without the video, in tables of any size."""
