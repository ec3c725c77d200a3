"""What people are asked about a question, and what becomes of it by their votes."""
