"""Classifiers that tell the narrator from dialogue: the classes behind `classifier=`."""
