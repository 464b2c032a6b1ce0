"""The dashboard: pages on which people watch experiments and change them. They are made on the server, and a small script keeps
them up to date."""
