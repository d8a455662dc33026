#!/usr/bin/env bash
# What Free Pascal's SQLdb makes of the row of a CALL, and of other statements that are no SELECT
#
# The guess: a row is a row. The INOUT arguments of a procedure come back as the columns of a SELECT
# do, with their types and values; a statement that the component cannot read is an error.
#
# Seen on 2026-11-29 (fp-units-db-3.2.2 3.2.2+dfsg-20 of Debian 12, PostgreSQL 15.20): SELECT, WITH
# and RETURNING are right. Of CALL, EXECUTE, FETCH, VALUES, TABLE and a SELECT in parentheses the
# fields have the right types, and wrong values, without an error: the server sent text, which the
# component reads as if it were binary. A boolean is true whatever it is, the integer 1 is some
# number of nine digits, 1.5 is 0.0. Only a text is right.
#
# Needs apt on x86-64, a linker (Debian: binutils, libc6-dev), and a PostgreSQL server with initdb
# (Debian: postgresql-15, which brings libpq5, too); it starts one of its own in a temporary folder.
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
    -o "-c listen_addresses=127.0.0.1 -c port=$port -k $work/data" start >/dev/null
"$bin/postgres" --version

cd "$work"
for package in fp-compiler fp-units-rtl fp-units-fcl fp-units-db; do
    apt-get -qq download "$package-3.2.2=3.2.2+dfsg-20"
done
for package in ./*.deb; do dpkg -x "$package" root; done

cat >seen.pas <<'PASCAL'
{$mode objfpc}{$H+}
uses db, sqldb, pqconnection;

var
  Connection: TPQConnection;
  Query: TSQLQuery;

function Seen(Field: TField): string;
begin
  if Field is TFloatField then
    Str(Field.AsFloat:0:1, Seen)
  else if (Field is TLongintField) and (Field.AsInteger <> 1) then
    Seen := 'not 1'   { which number it is depends on what stands behind the text }
  else
    Seen := Field.AsString;
end;

procedure Ask(const Statement: string);
var
  Field: TField;
begin
  Query.SQL.Text := Statement;
  Query.Open;
  Write(Statement, ' =');
  for Field in Query.Fields do
    Write(' ', Seen(Field));
  WriteLn;
  Query.Close;
end;

begin
  Connection := TPQConnection.Create(nil);
  Connection.HostName := '127.0.0.1';
  Connection.Params.Values['port'] := ParamStr(1);
  Connection.DatabaseName := 'postgres';
  Connection.UserName := 'tester';
  Connection.Transaction := TSQLTransaction.Create(Connection);
  Query := TSQLQuery.Create(Connection);
  Query.Database := Connection;
  Query.Transaction := Connection.Transaction;

  Connection.ExecuteDirect('CREATE PROCEDURE work(INOUT done boolean, INOUT i integer,'
    + ' INOUT f float8, INOUT t text) LANGUAGE plpgsql AS ''BEGIN END''');
  Connection.ExecuteDirect('CREATE TABLE item AS SELECT false AS done, 1 AS i');
  Connection.ExecuteDirect('PREPARE one AS SELECT false, 1');
  Connection.ExecuteDirect('DECLARE two CURSOR FOR SELECT false, 1');
  Ask('SELECT false, 1, 1.5::float8, ''x''');
  Ask('CALL work(false, 1, 1.5, ''x'')');
  Ask('CALL work(true, 1, 1.5, ''x'')');
  Ask('EXECUTE one');
  Ask('FETCH two');
  Ask('VALUES (false, 1)');
  Ask('TABLE item');
  Ask('(SELECT false, 1)');
  Ask('WITH a AS (SELECT false, 1) SELECT * FROM a');
  Ask('INSERT INTO item VALUES (false, 1) RETURNING *');
end.
PASCAL
units=$(echo "$work"/root/usr/lib/*/fpc/3.2.2/units/*)
root/usr/bin/ppcx64-3.2.2 -n -v0 "-Fu$units/*" seen.pas
./seen "$port" | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
SELECT false, 1, 1.5::float8, 'x' = False 1 1.5 x
CALL work(false, 1, 1.5, 'x') = True not 1 0.0 x
CALL work(true, 1, 1.5, 'x') = True not 1 0.0 x
EXECUTE one = True not 1
FETCH two = True not 1
VALUES (false, 1) = True not 1
TABLE item = True not 1
(SELECT false, 1) = True not 1
WITH a AS (SELECT false, 1) SELECT * FROM a = False 1
INSERT INTO item VALUES (false, 1) RETURNING * = False 1
SEEN
