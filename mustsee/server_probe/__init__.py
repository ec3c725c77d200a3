"""`mustsee probe`: what a server really sees, hears, orders and times of what it is sent.

Material (cards with numerals, clips, spoken digits, tones), the forms of the replies, comparisons
of what was sent with what was told, the faults named from them, and the page.
"""
