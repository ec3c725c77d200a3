"""The engine with which jobs run parts: stages over Ray Data, their workers and resources."""
