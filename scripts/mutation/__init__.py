"""Parts of ``scripts/mutate.py``: mutants, forked processes, and tests that run many times in one pytest session."""
