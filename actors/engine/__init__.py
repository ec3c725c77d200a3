"""The engine with which jobs run parts: stages over Ray Data, their workers and resources."""

__all__ = ["chunks", "hardware", "meter", "problems", "session", "stage", "watchdog"]
