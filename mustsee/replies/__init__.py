"""What a model wrote: its reasoning, the form of its reply, and the option that it chose."""
