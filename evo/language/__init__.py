"""The language of programs: instruction words, their text form, and what a task's programs are written in."""
