# Code of a role that others run without knowing it: in an index, which ANALYZE computes as a
# superuser, and behind a SECURITY DEFINER function that a superuser calls. There session_user is
# the superuser, and current_user the role.
package Trap;
use v5.32;
use warnings;
use experimental 'signatures';
use Exporter qw(import);

our @EXPORT = qw(set_trap spring_trap);

# In schema lair, with a table loot of these columns. $acts are statements of PL/pgSQL, which know
# the place: analyze or definer.
sub set_trap ($superuser, $session, $role, $columns, $acts) {
    $superuser->run("CREATE SCHEMA lair AUTHORIZATION $role");
    $session->run("CREATE TABLE lair.loot ($columns)", <<"SQL");
        CREATE FUNCTION lair.acts(place text) RETURNS text LANGUAGE plpgsql AS \$\$
        BEGIN
            IF session_user <> '$role' THEN $acts END IF;
            RETURN place;
        END \$\$;
        CREATE FUNCTION lair.in_index(place text) RETURNS text IMMUTABLE LANGUAGE plpgsql
            AS \$\$ BEGIN RETURN lair.acts(place); END \$\$;
        CREATE FUNCTION lair.definer(place text) RETURNS text LANGUAGE sql SECURITY DEFINER
            AS \$\$ SELECT lair.acts(place) \$\$;
        CREATE TABLE lair.trap (place text);
        CREATE INDEX ON lair.trap (lair.in_index(place));
        INSERT INTO lair.trap VALUES ('analyze');
SQL
    return;
}

sub spring_trap ($superuser) {
    return $superuser->run('ANALYZE lair.trap', q(SELECT lair.definer('definer')));
}

1;
