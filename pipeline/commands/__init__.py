"""The commands of the command line, one a file, loaded when they are called."""
