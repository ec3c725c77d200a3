"""Classifiers that separate narration from dialogue: the classes behind `classifier=`."""
