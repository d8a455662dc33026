#!/usr/bin/env perl
# Two versions of the library in one server, which do not share memory: sessions of both exclude
# each other, and tokens, leases and windows are one line. The other version is a copy of this one
# with another name for the shared memory, put into its place when some sessions have loaded it.
use FindBin;
use AdvisoryTest;

# An installation of its own, in which the library can be replaced.
$AdvisoryTest::Server::tree = "$FindBin::Bin/../..";
my $server = own_server();
my $library = do {
    chomp(my $dir = qx("$server->{PG_BINDIR}/pg_config" --pkglibdir));
    glob "$dir/advisory_ext.{so,dylib}"
};
my ($this, $look) = map { session(server => $server, application => $_) } qw(this look);
$this->run('CREATE EXTENSION advisory_ext');
$_->run("SELECT advisory.lock('beside', 'a')", "SELECT advisory.unlock('beside', 'a')")
    for $this, $look;

sub contents {
    open my $file, '<:raw', $_[0] or die "cannot read $_[0]: $!\n";
    local $/ = undef;
    return scalar <$file>
}

my $code = contents($library);
cmp_ok($code =~ s/(advisory_ext \d*)\d\0/$1x\0/g, '>=', 1,
    'the library has a name for its shared memory');

# A session that loads the library from now on loads this one.
sub put_in_place ($contents) {
    open my $file, '>:raw', "$library.new" or die "cannot write $library.new: $!\n";
    print {$file} $contents;
    close $file or die "cannot write $library.new: $!\n";
    chmod 0755, "$library.new";
    rename "$library.new", $library or die "cannot replace $library: $!\n";
    return;
}

put_in_place($code);
my $other = session(server => $server, application => 'other');

# ---- They exclude each other, and share no memory ------------------------------------------------

$this->run("SELECT advisory.lock('beside', 'a')");
$other->shows("SELECT advisory.try_lock('beside', 'a')", 0,
    'a lock that a session of this version holds the other one does not get');
$look->shows("SELECT name FROM advisory.locks WHERE pid = ?", 'a',
    'a session of this version sees its name', $this->pid);
$other->shows("SELECT name FROM advisory.stats WHERE name = 'a' AND acquired > 0", [],
    'one of the other does not, since it has other memory');
$this->run("SELECT advisory.unlock('beside', 'a')");

# ---- Tokens --------------------------------------------------------------------------------------

my $TOKEN = "SELECT advisory.lock('beside', 'a'), advisory.token('beside', 'a'),
        advisory.unlock('beside', 'a')";
my $highest = 0;
my $smaller = 0;
for (1 .. 50) {
    for my $session ($this, $other) {
        my $token = $session->rows($TOKEN)->[0][1];
        $smaller++ unless $token > $highest;
        $highest = $token;
    }
}
is($smaller, 0, 'tokens grow, whichever version gives them');
# Both at once.
my @given;
for (1 .. 50) {
    my $before = $highest;
    $_->start($TOKEN) for $this, $other;
    my @tokens = map { $_->finish->{rows}[0][1] } $this, $other;
    $smaller++ if grep { $_ <= $before } @tokens;
    push @given, @tokens;
    $highest = (sort { $a <=> $b } @tokens)[1];
}
is($smaller, 0, 'also at the same time');
my %seen;
is(scalar(grep { $seen{$_}++ } @given), 0, 'and none is given twice');
$other->run("SELECT advisory.tokens_above($highest)");
cmp_ok($this->rows($TOKEN)->[0][1] >> 50, '==', ($highest >> 50) + 1,
    'a new era that the other version begins is one for this');
$this->run("SELECT advisory.check_token('beside', 'a', 8)");
$other->fails("SELECT advisory.check_token('beside', 'a', 7)", '55000',
    'a token that is stale is so for both');

# ---- Leases and windows --------------------------------------------------------------------------

my $token = $this->value("SELECT token FROM advisory.lease('beside', 'a', '1h')");
$other->shows("SELECT token FROM advisory.try_lease('beside', 'a', '1h')", 'NULL',
    'a lease of this version the other does not get');
$other->shows("SELECT advisory.check_lease('beside', 'a', $token)", 1, 'but knows');
$other->start("SELECT token FROM advisory.lease('beside', 'a', '1h')");
$look->wait_until('it waits',
    q{SELECT wait_event IN ('advisory', 'AdvisoryExtLease') FROM pg_stat_activity
            WHERE pid = ?}, $other->pid);
my $took = undisturbed_time(sub {
    $this->run("SELECT advisory.end_lease('beside', 'a', $token)");
    cmp_ok($other->finish->{value}, '>', $token,
        'a session of the other version takes it when it is ended');
}, $this, $other);
cmp_ok($took, '<', 1, 'at once');
$other->shows("SELECT advisory.claim('beside', 'a', '1h', '2026-01-01') IS NOT NULL", 1,
    'a window');
$this->shows("SELECT advisory.claim('beside', 'a', '1h', '2026-01-01')", 'NULL',
    'is claimed once, by both versions');

# ---- A library that is older than the objects, and lacks some of their functions -----------------

put_in_place($code =~ s/advisory_claim_/advisory_klaim_/gr);
my $older = session(server => $server, application => 'older');
$older->fails("SELECT advisory.claim('beside', 'a', '1h', '2026-01-02')", '42883',
    'a function that it does not have is an error');
$older->shows("SELECT advisory.try_lock('beside', 'older') AND advisory.unlock('beside', 'older')",
    1, '... and what it has works');
# A function that returns a column more than this library knows.
my $columns = $older->value(
    q(SELECT pg_get_function_result('advisory_internal.directory'::regproc)))
        =~ s/\)$/, more text)/r;
$older->run(
    "CREATE FUNCTION wider() RETURNS $columns LANGUAGE c AS 'advisory_ext', 'advisory_directory'");
my $error = $older->fails('SELECT * FROM wider()', '42804',
    'a function with a column that it does not know is an error');
like($error->{hint}, qr/reconnect/, '... whose hint says what to do');

done_testing();
