"""The machine: recipes, readers, passes, executors, reports."""
