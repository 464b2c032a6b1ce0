"""HTML pages and figures. `robandit.cli.terminal` formats the output of commands."""
