"""Tables that tools print, one tool a file. The stacks that py-spy prints are read by intake."""
