"""What is made of the questions that passed: open-ended twins, siblings on the same fact, and the
steps by which one comes to the answer; each is looked at before it counts.
"""
