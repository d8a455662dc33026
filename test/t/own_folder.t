#!/usr/bin/env perl
# Outside of the server's own folders, as doc/install.md says: below a prefix, and in an extension
# image for CloudNativePG. PostgreSQL 18 and later find the files by two settings. Create and
# preload from there, in a server that has no other copy.
use FindBin;
use AdvisoryTest;
use Page;
use Replica;

my $root = "$FindBin::Bin/../..";
my $temp = $ENV{ADVISORY_EXT_TMP};
my ($install, $settings, $image, $cluster) =
    map { $_->{text} } Page->new("$root/doc/install.md")->others;
my ($major) = qx("$ENV{PG_CONFIG}" --version) =~ /(\d+)/;
my ($version) = contents("$root/advisory_ext.control") =~ /^default_version = '(.*)'/m;

sub contents {
    open my $file, '<', $_[0] or die "cannot read $_[0]: $!\n";
    local $/ = undef;
    return scalar <$file>
}

# make on this tree, as the tests have built it.
sub make (@arguments) {
    open my $out, '-|', 'bash', '-c', '. "$0/scripts/common.sh"; run_make "$@" 2>&1', $root,
        @arguments or die "cannot run make: $!\n";
    local $/ = undef;
    my $said = <$out> // '';
    return (close $out) ? '' : $said;
}

# ---- Below a prefix ------------------------------------------------------------------------------

my ($prefix) = $install =~ /^sudo make install prefix=(\S+)$/m;
my %folders = ($prefix => ["$prefix/share", "$prefix/lib"],
    '/opt/extras' => ['/opt/extras/share/postgresql', '/opt/extras/lib/postgresql']);
for my $prefix (sort keys %folders) {
    my $share = "$temp$folders{$prefix}[0]/extension";
    is(make('install', "DESTDIR=$temp", "prefix=$prefix"), '', "make install prefix=$prefix");
    ok(-e $_, "makes $_") for "$share/advisory_ext.control", "$share/advisory_ext--$version.sql";
    ok(-e "$temp$folders{$prefix}[1]/advisory_ext.so",
        "makes $folders{$prefix}[1]/advisory_ext.so");
}
is(make('uninstall', "DESTDIR=$temp", 'prefix=/opt/extras'), '', 'make uninstall');
is(qx(find '$temp/opt/extras' -type f), '', 'leaves no file there');

# ---- Servers that have no copy of their own ------------------------------------------------------

if ($major < 18) {
    like(make('image-tree', "IMAGE_TREE=$temp/image"), qr/is for PostgreSQL 18 or later/,
        'make image-tree: not for this server');
    SKIP: { skip "PostgreSQL $major has no extension_control_path: that came with 18", 1 }
    done_testing();
    exit;
}

# A copy of the installation that the tests use.
my $stage = "$temp/stage";
system('cp', '-al', $ENV{ADVISORY_EXT_STAGE}, $stage) == 0 or die "cannot copy the installation\n";
system('find', $stage, '-name', 'advisory_ext*', '-prune', '-exec', 'rm', '-rf', '{}', '+') == 0
    or die "cannot clear the copy\n";

sub bare_server {
    local $ENV{ADVISORY_EXT_STAGE} = $stage;
    my $server = own_server();
    session(server => $server)->fails('CREATE EXTENSION advisory_ext', '0A000',
        'a server without the extension');
    return $server;
}

# Puts lines into the configuration, and waits until new sessions have them.
sub set ($server, $lines) {
    as_server($server, 'sh', '-c', 'printf "%s\n" "$1" >>"$2"', 'sh', $lines,
        "$server->{ADVISORY_EXT_DATADIR}/postgresql.conf");
    $server->ctl('reload') or die "the server did not reload\n";
    my ($path) = $lines =~ /^extension_control_path = '(.*)'$/m or return;
    return wait_until(
        'the path is set',
        sub { session(server => $server)->value('SHOW extension_control_path') eq $path });
}

# The files of the library that a process has loaded. (In a container root may not see those of
# other users' processes.)
sub library_of ($pid) {
    my $maps = qx(bash '$root/scripts/server.sh' as cat /proc/$pid/maps);
    my %files = map { $_ => 1 } $maps =~ m{(/\S*/advisory_ext\.so)$}mg;
    return join ' ', keys %files;
}

sub works_from ($server, $folder) {
    my $session = session(server => $server);
    $session->run('CREATE EXTENSION advisory_ext', q(SELECT advisory.lock('own', 'folder')));
    is($session->value('SELECT advisory.version()'), $version, "version $version works");
    $session->shows('SELECT name FROM advisory.locks WHERE pid = pg_backend_pid()', 'folder',
        '... with its views');
    is(library_of($session->pid), "$folder/lib/advisory_ext.so",
        'the library is that of the folder');
    $session->disconnect;
    set($server, q(shared_preload_libraries = 'advisory_ext'));
    $server->ctl('restart', '-m', 'fast') or die "the server did not start again\n";
    my ($postmaster) = contents("$server->{ADVISORY_EXT_DATADIR}/postmaster.pid") =~ /\A(\d+)/;
    is(library_of($postmaster), "$folder/lib/advisory_ext.so", 'it can be preloaded from there');
    session(server => $server)->shows(q(SELECT advisory.try_lock('own', 'folder')), 1,
        '... and works');
    return;
}

my $own = bare_server();
my $here = $settings =~ s{'(?=\Q$prefix\E)}{'$temp}gr;
set($own, $here);
works_from($own, "$temp$prefix");

# pg_upgrade to a server with these settings. That of 18 itself does not find the library by them:
# the page says what to do.
my $to = cluster($own, 'upgraded');
$own->ctl('stop', '-m', 'fast') or die "the server did not stop\n";
as_server($own, 'initdb', "--pgdata=$to->{ADVISORY_EXT_DATADIR}", '--username=postgres',
    '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync');
configure($to, $here =~ s/ = '(.*)'$/=$1/gmr =~ /.+/g);
my $libdir = $stage . qx("$ENV{PG_CONFIG}" --pkglibdir) =~ s/\n//r;
symlink "$temp$prefix/lib/advisory_ext.so", "$libdir/advisory_ext.so"
    or die "cannot link the library: $!\n";
as_server($own, 'sh', '-c',
    'pg_upgrade --check -b "$1" -B "$1" -d "$2" -D "$3" -s "$PWD" -U postgres >check.log 2>&1 || { '
        . 'cat check.log; exit 1; }',
    'sh', $own->{PG_BINDIR}, $own->{ADVISORY_EXT_DATADIR}, $to->{ADVISORY_EXT_DATADIR});
pass('pg_upgrade finds the library with a link to it');
unlink "$libdir/advisory_ext.so" or die "cannot remove the link: $!\n";

# ---- An extension image --------------------------------------------------------------------------

# Mounted where CloudNativePG mounts it, with its settings.
my $tree = "$temp/extensions/advisory-ext";
is(make('image-tree', "IMAGE_TREE=$tree"), '', 'make image-tree');
my @files = map { s{^\Q$tree\E/}{}r } split /\n/, qx(find '$tree' -type f | LC_ALL=C sort);
is_deeply(\@files, [ 'Dockerfile', 'lib/advisory_ext.so', 'licenses/advisory_ext/LICENSE',
    "share/extension/advisory_ext--$version.sql", 'share/extension/advisory_ext.control' ],
    'makes a folder with these files');
my $dockerfile = contents("$tree/Dockerfile");
is_deeply([ $dockerfile =~ /^FROM (.*)$/mg ], ['scratch'], 'the image is made of nothing else');
is_deeply([ sort $dockerfile =~ m{^COPY (\S+)/ /\1/$}mg ],
    [ map { s{.*/}{}r } grep { -d } glob "$tree/*" ], 'and of all of its folders');

my $mounted = bare_server();
set($mounted,
    "extension_control_path = '\$system:$tree/share'\ndynamic_library_path = '\$libdir:$tree/lib'");
works_from($mounted, $tree);

# What the page says of the image agrees with itself and with this version.
my ($built) = $image =~ /^docker build --tag (\S+) results\/image-tree$/m;
my ($of) = $image =~ m{^make image-tree PG_CONFIG=/usr/lib/postgresql/(\d+)/}m;
like($built, qr/\/advisory_ext:\Q$version\E-$of-/, 'the page: the tag has the versions');
is_deeply([ $image =~ /^docker push (\S+)$/m, $cluster =~ /^ +reference: (\S+)$/m ],
    [ $built, $built ], '... and is that of the cluster');
like($cluster, qr{^  imageName: ghcr.io/cloudnative-pg/postgresql:$of-minimal-}m,
    '... whose PostgreSQL is that of the image');
like($cluster, qr/^    - name: advisory_ext\n      version: "\Q$version\E"$/m,
    '... and whose database gets this version');
done_testing();
