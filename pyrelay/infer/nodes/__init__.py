"""Objects that refer to each other: recursive data types as pools of columns."""
