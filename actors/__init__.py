"""The parts that stages run, and the models that they ask. Jobs (`ray_jobs`) put them together."""
