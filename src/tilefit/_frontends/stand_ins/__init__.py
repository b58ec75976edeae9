"""Stand-ins for packages and devices that user code asks for and that are not there."""
