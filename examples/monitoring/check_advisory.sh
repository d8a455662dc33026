#!/bin/sh
# A check for Nagios, Icinga and others that run monitoring plugins: advisory locks of a PostgreSQL
# server with advisory_ext.
set -u

PROGRAM=check_advisory.sh
usage() {
    cat <<'HELP'
Usage: check_advisory.sh MODE [-w RANGE] [-c RANGE] [-t SECONDS] [-l TIME]
                         [-H HOST] [-p PORT] [-U ROLE] [-d DATABASE]

Modes:
  pool    how full the server's lock table is, in percent
          (default: -w 50 -c 75, or the server's own settings pressure_warning and
          pressure_critical)
  waits   how many seconds the longest wait for an advisory lock has lasted
          (default: -w 60 -c 300)
  leaks   how many locks look forgotten
          (default: -w 0 -c 100)

Options:
  -w RANGE    warning unless the value is in this range
  -c RANGE    critical unless the value is in this range
              10 means 0:10; 10: is 10 and above; ~:10 is 10 and below; 5:10 is from 5 to 10;
              @5:10 is outside of that
  -t SECONDS  gives up after this time (default: 10)
  -l TIME     mode leaks: how long a session has to be idle, such as 30min (default: the setting
              advisory_ext.leak_after)
  -H, -p, -U, -d
              as for psql, which also takes them from PGHOST, PGPORT, PGUSER and PGDATABASE, and a
              password from ~/.pgpass
  -h, --help  this text
  -V, --version

Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (wrong usage; the server does not answer; there
is no advisory_ext).

The role needs pg_read_all_stats for leaks of other roles' sessions; see monitoring/grants.sql.
HELP
}

# In the text a "|" would begin the performance data.
unknown() {
    printf 'ADVISORY UNKNOWN - %s\n' "$(printf '%s' "$*" | head -n 1 | tr '|' '/')"
    exit 3
}

# A whole number, or the end of the program.
number() {
    case $2 in
        '' | *[!0-9]*) unknown "$1: not a number: $2" ;;
    esac
}

# inside VALUE RANGE: by the plugin guidelines. Fails if there has to be an alert, and with 2 if
# that is no range.
inside() {
    awk -v value="$1" -v range="$2" 'BEGIN {
        number = "^-?[0-9]+([.][0-9]+)?$"
        inverted = sub(/^@/, "", range)
        parts = split(range, end, ":")
        if (range == "" || parts > 2) exit 2
        low = parts == 2 ? end[1] : "0"
        high = parts == 2 ? end[2] : end[1]
        if (low == "" && parts == 2) low = "0"
        if (low != "~" && low !~ number || high != "" && high !~ number) exit 2
        if (low != "~" && high != "" && low + 0 > high + 0) exit 2
        is_inside = (low == "~" || value + 0 >= low + 0) && (high == "" || value + 0 <= high + 0)
        exit (inverted ? is_inside : !is_inside)
    }'
}

mode=
warning=
critical=
seconds=10
leak_after=

case ${1:-} in
    pool | waits | leaks)
        mode=$1
        shift
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    -V | --version)
        printf '%s 1.0 (advisory_ext)\n' "$PROGRAM"
        exit 0
        ;;
    '') unknown "a mode is missing: pool, waits or leaks; see $PROGRAM --help" ;;
    *) unknown "no such mode: $1; see $PROGRAM --help" ;;
esac

while [ $# -gt 0 ]; do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        -w | -c | -t | -l | -H | -p | -U | -d)
            [ $# -ge 2 ] || unknown "$1: a value is missing"
            case $1 in
                -w) warning=$2 ;;
                -c) critical=$2 ;;
                -t) seconds=$2 ;;
                -l) leak_after=$2 ;;
                -H) export PGHOST="$2" ;;
                -p) export PGPORT="$2" ;;
                -U) export PGUSER="$2" ;;
                -d) export PGDATABASE="$2" ;;
            esac
            shift 2
            ;;
        *) unknown "no such option: $1; see $PROGRAM --help" ;;
    esac
done
number -t "$seconds"
for range in "$warning" "$critical"; do
    [ -z "$range" ] || inside 0 "$range"
    [ $? -ne 2 ] || unknown "not a range: $range"
done

# One line: what is compared; its default ranges; the text; what else goes into the performance
# data.
case $mode in
    pool)
        unit=%
        limits=';0;100'
        query="SELECT round(percent_used::numeric, 1),
                   (SELECT setting FROM advisory.settings
                    WHERE name = 'advisory_ext.pressure_warning'),
                   (SELECT setting FROM advisory.settings
                    WHERE name = 'advisory_ext.pressure_critical'),
                   format('lock table %s%% full, %s of %s locks',
                          round(percent_used::numeric, 1), locks_used, locks_estimated),
                   format('locks=%s;;;0;%s headroom=%s;;;0;', locks_used, locks_estimated, headroom)
               FROM advisory.pressure"
        ;;
    waits)
        unit=s
        limits=';0;'
        query="SELECT floor(coalesce(extract(epoch FROM max(waited)), 0)), 60, 300,
                   CASE WHEN count(*) = 0 THEN 'nobody waits for an advisory lock'
                        ELSE format('%s waiting for advisory locks, the longest for %s s, root %s',
                                    count(DISTINCT pid), floor(extract(epoch FROM max(waited))),
                                    (array_agg(root_pid ORDER BY waited DESC))[1])
                   END,
                   format('waiting=%s;;;0;', count(DISTINCT pid))
               FROM advisory.waits
               WHERE waits_for_pid IS NOT NULL AND objsubid IS NOT NULL"
        ;;
    leaks)
        unit=
        limits=';0;'
        query="SELECT count(*), 0, 100,
                   CASE WHEN count(*) = 0 THEN 'no lock looks forgotten'
                        ELSE format('locks that look forgotten: %s, in sessions: %s, '
                                    'such as process %s', count(*), count(DISTINCT pid), min(pid))
                   END,
                   format('sessions=%s;;;0;', count(DISTINCT pid))
               FROM advisory.leaks"
        ;;
esac

command -v psql >/dev/null || unknown "there is no psql here"
export PGCONNECT_TIMEOUT="$seconds" PGAPPNAME="$PROGRAM"
export PGOPTIONS="${PGOPTIONS:-} -c statement_timeout=${seconds}s"
# The search_path keeps out functions and operators that others have created, and a superuser calls
# nobody else's. The view loads the library, which knows the setting then.
answer=$(psql -XqAtw -F '|' -v ON_ERROR_STOP=1 -v leak_after="$leak_after" 2>&1 <<SQL
SET search_path = pg_catalog;
SET client_min_messages = warning;
DO 'BEGIN
    IF current_setting(''is_superuser'')::boolean AND EXISTS (
        SELECT FROM pg_namespace JOIN pg_roles AS r ON r.oid = nspowner
        WHERE nspname = ''advisory'' AND NOT rolsuper) THEN
        RAISE insufficient_privilege USING
            MESSAGE = ''schema "advisory" belongs to a role that is not a superuser'',
            HINT = ''Connect as another role: the functions of that role would run ''
                ''with all rights of a superuser.'';
    END IF;
END';
SELECT FROM advisory.settings LIMIT 0;
SELECT :'leak_after' <> '' AS given \gset
\if :given
SET advisory_ext.leak_after = :'leak_after';
\endif
$query;
SQL
) || case $answer in
    *'"advisory.settings" does not exist'*)
        unknown "this database does not have the extension advisory_ext (choose one with -d)"
        ;;
    *) unknown "$answer" ;;
esac

# The rows are one, and none of its values has a "|".
IFS='|' read -r value default_warning default_critical text data <<ANSWER
$answer
ANSWER
case $value in
    '' | *[!0-9.]*) unknown "psql said: $answer" ;;
esac
warning=${warning:-$default_warning}
critical=${critical:-$default_critical}

if ! inside "$value" "$critical"; then
    status=CRITICAL code=2
elif ! inside "$value" "$warning"; then
    status=WARNING code=1
else
    status=OK code=0
fi
printf 'ADVISORY %s - %s | %s=%s%s;%s;%s%s %s\n' "$status" "$text" \
    "$mode" "$value" "$unit" "$warning" "$critical" "$limits" "$data"
exit "$code"
