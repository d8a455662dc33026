#!/bin/sh
# Prints the install script of an edition, joined of its parts in the order of their numbers, and of
# sql/surface:
#
#   sh scripts/join.sh extension    for sql/advisory_ext--VERSION.sql
#   sh scripts/join.sh portable     for portable/advisory.sql
set -eu
cd -- "$(dirname "$0")/.." >/dev/null

surface() { awk -v edition="$1" -f scripts/surface.awk sql/surface; }

# join FILE…: with an empty line between them. A line @FILE stands for what is in another file.
join() {
    awk 'FNR == 1 && NR > 1 { print "" }
        /^@/ {
            file = substr($0, 2)
            while ((got = (getline line < file)) > 0) print line
            if (got < 0) { print FILENAME ": there is no " file | "cat >&2"; exit 1 }
            close(file)
            next
        }
        { print }' "$@"
}

case $1 in
    extension)
        printf '%s\n' '\echo Use "CREATE EXTENSION advisory_ext" to load this file. \quit'
        join sql/parts/[01]*.sql
        printf '\n'
        surface extension
        join sql/parts/[2-9]*.sql ;;
    portable)
        join portable/parts/[0-7]*.sql
        printf '\n'
        surface portable
        join portable/parts/[89]*.sql ;;
    *)
        echo "usage: sh scripts/join.sh extension|portable" >&2
        exit 2 ;;
esac
