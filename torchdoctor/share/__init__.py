"""What may leave the machine: reports and logs without names and secrets."""
