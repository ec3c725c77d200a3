"""Model calls at work: admission, sending, retries, batches, and the log of what was paid."""
