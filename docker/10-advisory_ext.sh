#!/bin/sh
# The official image runs this once, when it has made a new cluster. It creates the extension in the
# image's own database; pg_cron, too, where that database is the one that pg_cron is set to; and the
# role of the exporter, where there is a password for it.
set -eu

sql() {
    psql --no-psqlrc --quiet -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" \
        --dbname "${POSTGRES_DB:-$POSTGRES_USER}" "$@"
}

sql --command 'CREATE EXTENSION advisory_ext'

sql <<'SQL'
SELECT count(*) = 1 AS is_here FROM pg_settings
WHERE name = 'cron.database_name' AND setting = current_database() \gset
\if :is_here
    CREATE EXTENSION pg_cron;
\endif
SQL

if [ -n "${ADVISORY_MONITOR_PASSWORD:-}" ]; then
    documents=/usr/share/doc/postgresql-doc-$PG_MAJOR/extension/advisory_ext
    sql --file "$documents/monitoring/grants.sql"
    sql -v password="$ADVISORY_MONITOR_PASSWORD" <<'SQL'
ALTER ROLE advisory_monitor PASSWORD :'password';
SQL
fi
