"""What commands show or export of a run and of this machine: texts, charts, pictures, cubins. Never changes a run's state."""
