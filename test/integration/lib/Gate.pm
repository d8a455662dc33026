# A gate at which every CREATE INDEX in a database waits, to stop a program in the middle of its
# work:
#
#     my $gate = shut_gate($session);              # the session is of that database
#     wait_until('it is there', sub { $gate->waiter });
#     $gate->open;
package Gate;

use AdvisoryTest;
use Exporter 'import';

our @EXPORT = qw(shut_gate);

use constant KEY => 4711;

sub shut_gate ($session) {
    $session->run('CREATE FUNCTION at_gate() RETURNS event_trigger LANGUAGE plpgsql
            AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(' . KEY . '); END $$',
        q{CREATE EVENT TRIGGER at_gate ON ddl_command_start
            WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION at_gate()});
    return bless { look => $session,
        keeper => session()->run('SELECT pg_advisory_lock(' . KEY . ')') }, __PACKAGE__;
}

# The process that holds it shut.
sub pid { return $_[0]{keeper}->pid }

# The process of a session that waits at the gate, if there is one.
sub waiter ($self) {
    return $self->{look}->value('SELECT pid FROM advisory.locks WHERE database = current_database()
            AND NOT granted AND key = ' . KEY);
}

sub open { return $_[0]{keeper}->run('SELECT pg_advisory_unlock(' . KEY . ')') }

1;
