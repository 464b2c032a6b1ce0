-- Creates the role and the database of the decision service. Run it once, as a superuser:
--
--     ROBANDIT_PASSWORD_FILE=/path/to/password psql --file=roles.sql postgres
--
-- The password is read from a file, so that it is not in a command line.

\set ON_ERROR_STOP on
\set password `cat "$ROBANDIT_PASSWORD_FILE"`
SELECT :'password' = '' AS missing \gset
\if :missing
DO $$ BEGIN RAISE 'ROBANDIT_PASSWORD_FILE must name a file with a password'; END $$;
\endif

CREATE ROLE robandit LOGIN PASSWORD :'password';
CREATE DATABASE robandit OWNER robandit ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE robandit FROM PUBLIC;
