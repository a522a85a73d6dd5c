"""Scripts for working on the project; nothing here is installed with the program."""
