"""Tables, remarks and progress that the commands print."""
