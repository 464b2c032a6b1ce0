"""Evidence that may be looked at after every reward: e-processes, and the order in which rewards may enter them."""
