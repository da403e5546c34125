"""Tasks: what one may declare beside `evo.task`, how one is loaded from its folder, and how its answers are checked."""
