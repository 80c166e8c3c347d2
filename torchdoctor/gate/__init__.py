"""Is this node fit for the job? Looks, judges, and says whose fault it is when it is not."""
