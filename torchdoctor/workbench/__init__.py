"""What authors of rules use: labelled inputs, the lint, golden answers, measurement, new rules."""
