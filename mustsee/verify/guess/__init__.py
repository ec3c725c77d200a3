"""Guesses from too little: filters (`filters`), their requests (`ask`) and replies (`replies`), and
how often they were right (`counts`).

A question that a model guesses without the video needs none.
"""
