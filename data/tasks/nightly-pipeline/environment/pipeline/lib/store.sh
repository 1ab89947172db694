# digest FILE
digest() {
    sha256sum $1 | cut -d' ' -f1
}

# store FILE: copies it into the archive; fails when it is there already
store() {
    local sum=$(digest $1)
    local dir=$ARCHIVE/sha/${sum:0:2}
    mkdir -p $dir
    [ -e $dir/$sum.dat ] && return 1
    cp $1 $dir/$sum.dat
}
