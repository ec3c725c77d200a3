"""Guesses from too little: filters (`filters`), their requests and replies (`ask`), and how
often they were right (`counts`).

A question that a model guesses without the video needs none.
"""
