#!/usr/bin/env perl
# The WARNING about a transaction-level lock outside a transaction block (its rules:
# test/sql/45_no_transaction.sql), as clients cause it that psql is not: by the extended protocol,
# prepared statements of the protocol, and pipelines.
use AdvisoryTest;

create_database();
my $session = session();
my $LOCK = 'SELECT advisory.try_xact_lock($1, $2)';

# How often each function warns.
sub warned ($result) {
    return scalar grep { /try_xact_lock\(\) has no lasting effect/ } @{ $result->{warnings} }
}

is(warned($session->query($LOCK, 'n', 'a')), 1, 'extended protocol: warned');
is(warned($session->query('SELECT advisory.try_xact_lock($1, $2), advisory.try_xact_lock($1, $3)',
    'n', 'a', 'b')), 0, 'not for several calls');
is(warned($session->query($LOCK . ', $3::int', 'n', 'a', 1)), 0,
    'not if it does something else, too');
$session->run('BEGIN');
is(warned($session->query($LOCK, 'n', 'a')), 0, 'not in a transaction block');
$session->run('COMMIT');

# A statement that the client prepares once. From the sixth time on it can have a generic plan.
my $prepared = $session->dbh->prepare($LOCK, { pg_prepare_now => 1 });
my @warnings;
{
    local $SIG{__WARN__} = sub { push @warnings, $_[0] };
    for my $i (1 .. 8) {
        $prepared->execute('n', "name $i");
        $prepared->fetchall_arrayref;
    }
}
is(warned({ warnings => \@warnings }), 8, 'a statement prepared by the protocol: each time');

# What pgbench is told in a pipeline.
sub pipeline (@statements) {
    my $file = "$ENV{ADVISORY_EXT_TMP}/no_transaction.$$.sql";
    open my $script, '>', $file or die "$file: $!\n";
    print {$script} map { "$_\n" } '\startpipeline', (map { "$_;" } @statements), '\endpipeline';
    close $script or die "$file: $!\n";
    my $pgbench = "$ENV{PG_BINDIR}/pgbench --no-vacuum --protocol=extended --transactions=1";
    my $said = qx{$pgbench --file=$file $ENV{ADVISORY_TEST_DATABASE} 2>&1};
    unlink $file;
    like($said, qr{processed: 1/1}, "the pipeline ran: @statements") or diag($said);
    return scalar(() = $said =~ /has no lasting effect/g);
}
my $bare = q{SELECT advisory.try_xact_lock('n', 'a')};
is(pipeline($bare), 1, 'warned if it is alone in a pipeline');
is(pipeline($bare, 'SELECT 1'), 1,
    'also if it is the first: the server does not know what follows');
is(pipeline('SELECT 1', $bare), 0,
    'not behind another statement, with which it is one transaction');
is(pipeline('BEGIN', $bare, 'COMMIT'), 0, 'nor behind BEGIN');
done_testing();
