#!/bin/bash
set -euo pipefail
rm -f /app/pipeline/lib/check.sh /app/pipeline/lib/store.sh
cat > /app/pipeline/run.sh <<'SH'
#!/bin/bash
# Nightly archive: run.sh INBOX ARCHIVE
set -uo pipefail
export LC_ALL=C
unset CDPATH GREP_OPTIONS
IFS=$' \t\n'

fail() { printf 'run.sh: %s\n' "$2" >&2; exit "$1"; }

[ $# -eq 2 ] || fail 2 'usage: run.sh INBOX ARCHIVE'
case $1 in /*) inbox=$1 ;; *) inbox=./$1 ;; esac
case $2 in /*) archive=$2 ;; *) archive=./$2 ;; esac
[ -d "$inbox" ] || fail 2 "not a folder: $1"
[ -n "$2" ] || fail 2 'no archive is named'

list= manifest= badlist= part=
trap 'rm -f -- ${list:+"$list"} ${manifest:+"$manifest"} ${badlist:+"$badlist"} ${part:+"$part"}' EXIT
mkdir -p -- "$archive/sha" || fail 3 "cannot make $archive/sha"
list=$(mktemp -- "$archive/.list.XXXXXX") && manifest=$(mktemp -- "$archive/.manifest.XXXXXX") \
    && badlist=$(mktemp -- "$archive/.bad.XXXXXX") || fail 3 "cannot write to $archive"
find "$inbox/" -type f -name '*.dat' -print0 > "$list" || fail 3 "cannot read all of $1"

# is_good FILE: the last line says how many lines stand before it. "$(...)" would eat line feeds and NUL bytes: compare digests.
is_good() {
    local lines last
    lines=$(wc -l < "$1") && last=$(tail -n 1 -- "$1" | sha256sum) || fail 3 "cannot read $1"
    [ "$last" = "$(printf 'END %s' "$lines" | sha256sum)" ] || [ "$last" = "$(printf 'END %s\n' "$((lines - 1))" | sha256sum)" ]
}

good=0 bad=0 new=0 bytes=0
while IFS= read -r -d '' file; do
    name=${file#"$inbox/"}
    printf -v quoted %q "$name"
    [ -r "$file" ] || fail 3 "cannot read $name"
    if ! is_good "$file"; then
        bad=$((bad + 1))
        printf '%s\n' "$quoted" >> "$badlist" || fail 3 'cannot write'
        continue
    fi
    sum=$(sha256sum < "$file") || fail 3 "cannot read $name"
    sum=${sum%% *}
    size=$(wc -c < "$file") || fail 3 "cannot read $name"
    dir=$archive/sha/${sum:0:2}
    if [ ! -e "$dir/$sum.dat" ]; then
        mkdir -p -- "$dir" || fail 3 "cannot make $dir"
        part=$(mktemp -- "$dir/.part.XXXXXX") || fail 3 "cannot write to $dir"
        { cat < "$file" > "$part" && chmod 644 -- "$part" && mv -- "$part" "$dir/$sum.dat"; } || fail 3 "cannot copy $name"
        part=
        new=$((new + 1))
    fi
    good=$((good + 1)) bytes=$((bytes + size))
    printf '%s\t%s\t%s\n' "$sum" "$size" "$quoted" >> "$manifest" || fail 3 'cannot write'
done < "$list"

sort -o "$manifest" -- "$manifest" && sort -o "$badlist" -- "$badlist" || fail 3 'cannot sort'
chmod 644 -- "$manifest" "$badlist"
mv -T -- "$manifest" "$archive/manifest.tsv" && mv -T -- "$badlist" "$archive/bad.txt" || fail 3 'cannot write the lists'
printf 'good=%s bad=%s new=%s bytes=%s\n' "$good" "$bad" "$new" "$bytes"
[ "$bad" -eq 0 ]
SH
chmod 755 /app/pipeline/run.sh
