"""The contract with PostgreSQL, and what only PostgreSQL has: its addresses, errors and settings."""

import psycopg
import pytest

from storage.contract import SharedContract


class TestPostgres(SharedContract):
    @pytest.fixture
    def location(self, postgres_url):
        return postgres_url

    def make_newer(self, location):
        with psycopg.connect(location) as db:
            db.execute("UPDATE robandit.store SET version = version + 1")

    def damage(self, location):
        with psycopg.connect(location) as db:
            db.execute("DROP TABLE robandit.snapshot")
