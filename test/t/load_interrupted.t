#!/usr/bin/env perl
# After a statement_timeout while the library is being loaded, the next statement of the session
# works. The load can be interrupted where it warns about a setting that the role may not set.
use AdvisoryTest;

my $role = "advisory_load_$$";
create_database();
my $owner = session()->run("CREATE ROLE $role LOGIN");

my ($cancelled, %states) = (0);
for my $try (0 .. 299) {
    my $session = session(role => $role);
    # Before the library is there, any role can set anything.
    $session->run(q(SET advisory_ext.track = 'none'), 'SET statement_timeout = ' . (1 + $try % 10));
    $cancelled++
        if ($session->query(q(SELECT advisory.try_lock('load', 'a', NULL)))->{state} // '')
        eq '57014';
    my $state;
    # If SET itself was canceled the driver may report success. Then the result of the next
    # statement proves nothing. And if the timer fires just before SET ends, the server reports that
    # while it waits for the next statement, which is then not one of the test.
    do {
        1 while $session->query('SET statement_timeout = 0')->{state};
        $session->query('SELECT 1');
        $state = $session->query(q(SELECT advisory.holds('load', 'a')))->{state};
    } while $state && ($session->query('SHOW statement_timeout')->{value} // '') ne '0';
    $states{ $state // 'works' }++;
}
cmp_ok($cancelled, '>', 0, 'some were cancelled');
is_deeply([ keys %states ], ['works'], 'and all of them work afterwards') or diag explain \%states;

done_testing();
