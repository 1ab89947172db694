# is_good FILE: the last line says how many lines stand before it
is_good() {
    last=$(tail -1 $1)
    lines=$(cat $1 | wc -l)
    n=${last#END }
    [ $n -eq $(($lines - 1)) ] 2>/dev/null
}
