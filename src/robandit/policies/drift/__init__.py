"""Policies that follow changes: combinators that add probes and restarts to any policy."""
