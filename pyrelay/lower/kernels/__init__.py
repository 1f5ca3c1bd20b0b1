"""Kernel IR: fused groups and scalar programs as loops over scalars, by schedules."""
