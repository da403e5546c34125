"""Programs whose pictures tests know."""

# The plane task fills these programs' pictures with one colour.
RED, GREEN, BLUE = "1.0", "-1.0", "0.0"
COLORS = {RED: (255, 0, 0), GREEN: (0, 255, 0), BLUE: (0, 0, 255)}
