"""What is made of the questions that passed: open-ended twins, each a question of its own that is
checked like any other.
"""
