"""Reports and exports of a run and of this machine: texts, charts, pictures, cubins. Never changes a run's state."""
