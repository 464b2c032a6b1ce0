"""HTML pages and figures. What the terminal shows is in `robandit.cli.terminal`."""
