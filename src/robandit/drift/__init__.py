"""Detects that the law of an arm's rewards changed, with a bound on false alarms for any law."""
