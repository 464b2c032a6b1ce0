"""The core of the decision service: events, and experiments whose state is a fold of their log. It knows no HTTP."""
