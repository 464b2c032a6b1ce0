"""What people look at: tables for the terminal and one self-contained HTML page."""
