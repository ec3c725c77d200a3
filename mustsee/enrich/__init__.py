"""What is made of the questions that passed: open-ended twins, and siblings on the same fact; each a
question of its own that is checked like any other.
"""
