"""The decision service over HTTP: an ASGI application on top of `robandit.decisions`, and the server that runs it."""
