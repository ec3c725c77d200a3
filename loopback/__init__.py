"""An OpenAI-compatible endpoint on this machine, for tests and benchmarks."""
