"""Embedders of text or frames: the classes behind `embed=`."""
