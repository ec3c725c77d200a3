"""An OpenAI-compatible endpoint and an object store on this machine, with planned faults, for tests
and benchmarks.
"""
