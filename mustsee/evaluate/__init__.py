"""What an answerer was asked and said, and the scores, certificates and pages made from it."""
