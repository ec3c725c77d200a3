"""The engine: a stage over Ray Data, its workers, their helpers, and the hardware they use."""
