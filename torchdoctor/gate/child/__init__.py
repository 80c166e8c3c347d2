"""Programs that the gate runs in the job's own interpreter."""
