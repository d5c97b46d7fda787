"""What people look at: figures, notebook display, the report."""
