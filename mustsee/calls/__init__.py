"""Model calls: what is asked and answered, what it costs, what an endpoint lets through."""
