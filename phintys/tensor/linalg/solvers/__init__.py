"""Solutions of systems of linear equations."""
