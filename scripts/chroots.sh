# shellcheck shell=bash
# Chroots of Debian releases, for tests that need other servers than this machine's. To be sourced
# after common.sh, by a script that runs as root and that locks the directory in which it keeps its
# chroots.
#
#   ADVISORY_EXT_MATRIX_DIR=…   where they are kept (default: under XDG_CACHE_HOME or /var/cache)

# shellcheck disable=SC2034 # those that source this use it
CACHE=${ADVISORY_EXT_MATRIX_DIR:-${XDG_CACHE_HOME:-/var/cache}/$EXTENSION}
# shellcheck disable=SC2034
BASES=$CACHE/bases              # a minimal chroot of each release; the others are copies of it
# shellcheck disable=SC2034
CHROOT_TREE=/usr/src/$EXTENSION     # the copy of the work tree in a chroot

child=          # what run_shown waits for

# ---- This machine's Debian -----------------------------------------------------------------------

debian_codename() ( . /etc/os-release && [ "${ID:-}" = debian ] && say "${VERSION_CODENAME:-sid}" )

# Where apt gets this machine's own release from: the same place has the others.
mirror() {
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk -v release="$(debian_codename)" '$1 == release { print $2; exit }'
}

# ---- Running things ------------------------------------------------------------------------------

# run_shown PREFIX LOG COMMAND…: runs it, showing every line as it comes behind the prefix; nothing
# without one.
run_shown() {
    local prefix=$1 log=$2 status=0 shower=
    shift 2
    : >"$log"
    setpriv --pdeathsig KILL -- "$@" </dev/null >>"$log" 2>&1 8>&- 9>&- &
    child=$!
    if [ -n "$prefix" ]; then
        tail -n +1 -f --pid="$child" "$log" 2>/dev/null 9>&- | sed -u "s/^/$prefix/" 9>&- &
        shower=$!
    fi
    wait "$child" || status=$?
    child=
    [ -z "$shower" ] || wait "$shower" || true
    return "$status"
}

# The arguments that run a command in namespaces of its own. All its mounts and processes end with
# it.
IN_NAMESPACE=(unshare --fork --kill-child --pid --mount --mount-proc --)

# Run within such a namespace: mounts what a chroot needs, and runs a command there. Not by exec, so
# that the first process of the namespace is a shell, which looks after orphans. With
# WITHOUT_TERMINALS nothing there can open one, as in a bare chroot.
# shellcheck disable=SC2016 # expanded by the inner shell
ENTER_CHROOT='
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mkdir -p "$root/dev/shm"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    mkdir -p "$root/dev/pts"
    [ -n "${WITHOUT_TERMINALS:-}" ] || mount -t devpts -o ptmxmode=666 devpts "$root/dev/pts"
    chroot "$root" "$@"
    exit $?'

# in_chroot PREFIX LOG ROOT COMMAND…
in_chroot() {
    local prefix=$1 log=$2 root=$3 name environment=()
    shift 3
    for name in http_proxy https_proxy no_proxy PARTS TESTS TEST_JOBS TEST_TIMEOUT TEST_UNTIL \
        TEST_TWICE TEST_ONCE EDITION CI ADVISORY_EXT_JIT; do
        [ -z "${!name:-}" ] || environment+=("$name=${!name}")
    done
    run_shown "$prefix" "$log" "${IN_NAMESPACE[@]}" bash -c "$ENTER_CHROOT" chroot "$root" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        ${environment[@]+"${environment[@]}"} "$@"
}

# Copies the work tree as it stands, without what git ignores.
copy_tree() {
    rm -rf "$1"
    mkdir -p "$1"
    work_tree_files | tar -C "$REPOSITORY" --null --files-from=- --create |
        tar -C "$1" --no-same-owner --extract
}

work_tree_files() {
    local file
    cd "$REPOSITORY" || return
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard
    else
        find . -name .git -prune -o -type f -print0
    fi | while IFS= read -r -d '' file; do
        [ ! -e "$file" ] || printf '%s\0' "$file"
    done
}

end_child() {
    [ -z "$child" ] || { kill -KILL "$child" && wait "$child"; } 2>/dev/null || true
}

reason() { { grep '^E: ' "$1" || tail -n 1 "$1" || say "unknown"; } | tail -n 1; }

# ---- Other processors ----------------------------------------------------------------------------

# Asks the kernel to call qemu for programs of other processors. Where no init system has done so
# yet, nothing else did.
call_qemu() {
    local registry=/proc/sys/fs/binfmt_misc
    bash "$REPOSITORY/scripts/packages.sh" qemu
    [ -e $registry/status ] || mount -t binfmt_misc binfmt_misc $registry
    if [ ! -e $registry/qemu-s390x ] || [ ! -e $registry/qemu-aarch64 ]; then
        update-binfmts --enable
    fi
}

# ---- Making a chroot -----------------------------------------------------------------------------

# make_chroot RELEASE ROOT LOG [ARCHITECTURE]: a minimal one, whose apt reaches the mirror. On a
# failure the reason is in the log.
make_chroot() {
    local release=$1 root=$2 base=$BASES/$1${4:+-$4} status=0
    mkdir -p "$BASES"
    exec 8>"$base.lock"
    flock 8     # others may need the same one
    # Not one of yesterday: a chroot that is made anew has the newest packages.
    [ -n "$(find "$base" -maxdepth 0 -mtime -1 2>/dev/null)" ] ||
        bootstrap "$release" "$base" "$3" "${4:-}" || status=$?
    exec 8>&-
    [ "$status" -eq 0 ] || return "$status"
    rm -rf "$root"
    cp -a "$base" "$root"
}

bootstrap() {
    local release=$1 base=$2 log=$3 uri options=()
    uri=$(mirror)
    [ -n "$uri" ] || { say "this machine's apt names no Debian mirror" >"$log"; return 1; }
    [[ $uri != https:* ]] || options=(--include=ca-certificates)
    [ -z "$4" ] || options+=("--arch=$4")
    rm -rf "$base" "$base.partial"
    run_shown "" "$log" "${IN_NAMESPACE[@]}" \
        debootstrap --variant=minbase ${options[@]+"${options[@]}"} \
        "$release" "$base.partial" "$uri" || return 1
    configure_apt "$base.partial"
    mv "$base.partial" "$base"
    touch "$base"
}

# The chroots need this machine's settings of apt to reach the mirror, but not its hooks, which call
# missing programs.
configure_apt() {
    local root=$1 file
    for file in /etc/apt/apt.conf.d/*; do
        [ -f "$file" ] || continue
        if grep -q 'Acquire::' "$file" && ! grep -qE 'Invoke|Hook' "$file"; then
            cp "$file" "$root/etc/apt/apt.conf.d/"
        fi
    done
    # What can be made anew need not survive a crash.
    say force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/$EXTENSION"
    # A mirror that lags behind has a release file past its date.
    say 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90$EXTENSION"
}
