"""What commands show of a run and of this machine: texts, charts, pictures, cubins. Reads runs, never changes one."""
