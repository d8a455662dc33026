#!/usr/bin/env perl
# What happens at the ends of transactions and sessions when no more dynamic shared memory is
# available, which is when new names go into the name table. It takes a server that calls
# posix_fallocate() for it, which can be made to fail, by a library put before it.
use AdvisoryTest;
use Time::HiRes qw(sleep time);

use constant { NAMES => 3000, ROUNDS => 5, REFUSED_S => 0.05, TIMEOUT_MS => 300, SLEEP_S => 60 };

my $dir     = $ENV{ADVISORY_EXT_TMP};
my $flag    = "$dir/no_memory.$$";
my $library = "$dir/no_memory.$$.so";
my $cc      = program('gcc') // program('cc') or plan(skip_all => 'no C compiler');
open my $source, '|-', $cc, '-shared', '-fPIC', '-x', 'c', '-o', $library, '-' or die "$cc: $!\n";
print {$source} <<"C";
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
/* The name that the server calls where a long has 32 bits. */
int posix_fallocate64(int fd, off64_t offset, off64_t length)
{
    if (access("$flag", F_OK) == 0)
        return ENOSPC;
    return fallocate64(fd, 0, offset, length) == 0 ? 0 : errno;
}
int posix_fallocate(int fd, off_t offset, off_t length)
{
    return posix_fallocate64(fd, offset, length);
}
C
close $source or plan(skip_all => 'the C compiler does not work');
chmod 0755, $library;

my $server;
{
    local $ENV{LD_PRELOAD} = $library;
    $server = own_server('advisory_ext.max_names=100000', 'dynamic_shared_memory_type=posix');
}
sub there { return session(server => $server) }
my $look = there()->run('CREATE EXTENSION advisory_ext');

# Take new names, one transaction each, until there is no room for more, and then some. After a name
# that was refused the server refuses all others for a moment, so that only several rounds without a
# stored name say that there is no room.
my $session = there()->run("SELECT advisory.xact_lock('before', 'a')");
open my $file, '>', $flag or die "$flag: $!\n";
close $file;
my ($names, $rounds, $stored) = (0, 0, 0);
wait_until('there is no room', sub {
    my ($from, $to) = ($names + 1, $names += NAMES);
    $session->run(qq(DO \$\$ BEGIN FOR i IN $from .. $to LOOP PERFORM advisory.xact_lock('name', i);
            COMMIT; END LOOP; END \$\$));
    sleep REFUSED_S;
    my $before = $stored;
    $stored = $look->value('SELECT names FROM advisory.directory');
    $rounds = $stored == $before ? $rounds + 1 : 0;
    return $rounds == ROUNDS;
});
cmp_ok($look->value('SELECT not_stored FROM advisory.directory'), '>', 0, 'names find no memory');
$look->shows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", 0,
    'the locks do not mind');

# After the errors that were caught at COMMIT the session must still react to interrupts.
$session->run("SET statement_timeout = @{[TIMEOUT_MS]}");
my $start = time;
$session->fails("SELECT pg_sleep(@{[SLEEP_S]})", '57014', 'the session can still be cancelled');
cmp_ok(time - $start, '<', SLEEP_S / 2, 'and in time');
$session->run('RESET statement_timeout');

# Such an error must not keep the end of a session from releasing its locks.
for my $what ("xact_lock('at exit', 'lock')", "xact_acquire('at exit', 'slot', 2)",
        "acquire('at exit', 'slots', 2)") {
    my $ends = there()->run('BEGIN', "SELECT advisory.$what");
    leave($look, $ends);
    $look->shows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", 0,
        "$what: the session has ended, and its lock");
    $look->shows("SELECT count(*) FROM advisory.locks WHERE namespace = 'at exit' OR granted", 0,
        'nobody is seen to hold it');
    my $next = there();
    isnt($next->value("SELECT advisory.$what"), undef, 'the next one has it');
}

# When memory is available again, everything works again.
unlink $flag;
wait_until('names are stored again', sub {
    there()->run("SELECT advisory.xact_lock('after', 'a')");
    $look->value("SELECT count(*) FROM advisory.stats WHERE namespace = 'after'")
});
$look->shows("SELECT acquired > 0 FROM advisory.stats WHERE namespace = 'after'", 1,
    'names are stored again');

done_testing();
