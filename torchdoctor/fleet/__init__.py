"""Many reports: what fails how often, since when, and where."""
