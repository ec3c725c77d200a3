"""Answerers of questions: the classes behind `answer=`."""
