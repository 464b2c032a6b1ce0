"""Robandit."""
