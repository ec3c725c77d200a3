"""Text or frames to vectors: the classes behind `embed=`."""
