#!/usr/bin/env bash
# Which timeouts there are for a transaction that uses a table of postgres_fdw
#
# The guess: a foreign table is used like another one. So lock_timeout limits the wait for its rows
# as statement_timeout does, and as long as the session is at work, no timeout for idle sessions
# concerns it, least of all if it has only read from the other server.
#
# Seen on 2026-11-29 (PostgreSQL 15.20): statement_timeout ends such a wait, lock_timeout does not:
# here the statement waits for seconds instead of half of one, and succeeds. It must be set in the
# other server's session, as the option "options" of the foreign server has it. That session is
# "idle in transaction" from the first read to the COMMIT, while this one works or waits for a lock.
# If the other server's idle_in_transaction_session_timeout ends it, the COMMIT fails, and what was
# written here is lost, although nothing was written there. When it is read again before the COMMIT,
# the transaction fails at that time.
#
# Needs a PostgreSQL server with initdb and its contrib modules (Debian: postgresql-15); it starts
# one of its own in a temporary folder.
set -euo pipefail

work=$(mktemp -d)
bin=${PG_BIN:-/usr/lib/postgresql/15/bin}
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    as_user=(setpriv --reuid postgres --regid postgres --clear-groups --)
    chmod 755 "$work"
fi
end() {
    "${as_user[@]}" "$bin/pg_ctl" -D "$work/data/server" -m immediate -w stop >/dev/null 2>&1 ||
        true
    rm -rf "$work"
}
trap end EXIT

mkdir "$work/data"
[ "${#as_user[@]}" -eq 0 ] || chown postgres "$work/data"
"${as_user[@]}" "$bin/initdb" -D "$work/data/server" -A trust -U tester >/dev/null
port=$((20000 + RANDOM % 20000))
"${as_user[@]}" "$bin/pg_ctl" -D "$work/data/server" -w -l "$work/data/log" \
    -o "-c listen_addresses=127.0.0.1 -c port=$port -k $work/data" \
    start >/dev/null
"$bin/postgres" --version

cd "$work"
here() { "$bin/psql" -X -q -At -h 127.0.0.1 -p "$port" -U tester postgres "$@"; }
there() { "$bin/psql" -X -q -At -h 127.0.0.1 -p "$port" -U tester other "$@"; }
here -c 'CREATE DATABASE other' -c 'CREATE TABLE log (text text)'
there -c 'CREATE TABLE item AS SELECT 0 AS number'
here <<SQL
CREATE EXTENSION postgres_fdw;
CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw
    OPTIONS (host '127.0.0.1', port '$port', dbname 'other');
CREATE USER MAPPING FOR tester SERVER other OPTIONS (user 'tester');
CREATE FOREIGN TABLE item (number integer) SERVER other;
SQL

# waits SETTING: an UPDATE with it, while another session locks the row for 4 seconds.
waits() {
    local end
    there -c 'BEGIN; SELECT FROM item FOR UPDATE; SELECT pg_sleep(4); COMMIT' >/dev/null &
    sleep 0.5
    end=$((SECONDS + 2))
    here -c "SET $1" -c 'UPDATE item SET number = number + 1' 2>error.txt || true
    printf '%s: %s, %s\n' "$1" "$(grep -q ERROR error.txt && echo error || echo updated)" \
        "$([ "$SECONDS" -le "$end" ] && echo soon || echo late)"
    wait $!
}

# transaction TITLE STATEMENT: it reads from the other server, writes here, works on here for more
# than a second, runs the statement and commits.
transaction() {
    here -c 'TRUNCATE log'
    here 2>error.txt <<SQL || true
BEGIN;
SELECT number FROM item \gset
INSERT INTO log VALUES ('written');
SELECT pg_sleep(1.5) \g /dev/null
$2 \g /dev/null
COMMIT;
SQL
    printf '%s, %s: %s rows%s\n' "$1" "$2" "$(here -c 'SELECT count(*) FROM log')" \
        "$(sed -n 's/.*remote SQL command: \([A-Z]*\).*/, error at remote \1/p' error.txt)"
}

{
    waits "statement_timeout = '500ms'"
    waits "lock_timeout = '500ms'"
    here -c "ALTER SERVER other OPTIONS (ADD options '-c lock_timeout=500')"
    waits 'lock_timeout = 0'
    transaction 'no timeout there' 'SELECT 1'
    there -c "ALTER DATABASE other SET idle_in_transaction_session_timeout = '500ms'"
    transaction 'a timeout there' 'SELECT 1'
    transaction 'a timeout there' 'SELECT number FROM item'
} | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
statement_timeout = '500ms': error, soon
lock_timeout = '500ms': updated, late
lock_timeout = 0: error, soon
no timeout there, SELECT 1: 1 rows
a timeout there, SELECT 1: 0 rows, error at remote COMMIT
a timeout there, SELECT number FROM item: 0 rows, error at remote DECLARE
SEEN
