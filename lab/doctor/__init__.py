"""What is wrong with the rotation of an engine? `python -m lab.doctor --help`."""
