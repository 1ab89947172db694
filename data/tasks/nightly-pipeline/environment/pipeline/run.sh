#!/bin/bash
# Nightly archive: run.sh INBOX ARCHIVE
set -e
cd $(dirname $0)
. lib/check.sh
. lib/store.sh

INBOX=$1
ARCHIVE=$2
mkdir -p $ARCHIVE/sha
rm -f $ARCHIVE/manifest.tsv $ARCHIVE/bad.txt

good=0
bad=0
new=0
bytes=0
find $INBOX -name *.dat | while read f; do
    if is_good $f; then
        good=$((good + 1))
        store $f && new=$((new + 1))
        size=$(ls -l $f | cut -d' ' -f5)
        bytes=$((bytes + size))
        echo -e "$(digest $f)\t$size\t$f" >> $ARCHIVE/manifest.tsv
    else
        bad=$((bad + 1))
        echo $f >> $ARCHIVE/bad.txt
    fi
done

sort -o $ARCHIVE/manifest.tsv $ARCHIVE/manifest.tsv
sort -o $ARCHIVE/bad.txt $ARCHIVE/bad.txt
echo "good=$good bad=$bad new=$new bytes=$bytes"
[ $bad -eq 0 ]
