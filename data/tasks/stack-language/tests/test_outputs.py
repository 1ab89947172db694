"""Runs programs with the agent's interpreter. Every expected output was worked out from the specification."""

import os
import subprocess

import pytest

ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


@pytest.fixture()
def pile(tmp_path):
    def run(program, out="", error=None, timeout=20):
        path = tmp_path / "p.pile"
        path.write_text(program, encoding="utf-8")
        done = subprocess.run(["python3", "/app/pile.py", str(path)], capture_output=True, timeout=timeout, cwd="/", env=ENV)
        got = done.stdout.decode(), done.stderr.decode().strip(), done.returncode
        assert got == (out, f"error: {error}" if error else "", 1 if error else 0), program

    return run


def test_numbers_and_stack_words(pile):
    pile("7 2 / print -7 2 / print 7 -2 % print -7 2 % print", "3\n-3\n1\n-1\n")
    pile("1 2 3 rot print print print 4 5 over print print print", "1\n3\n2\n4\n5\n4\n")
    pile("1 2 depth print 99999999999999999999 dup * print", "2\n9999999999999999999800000000000000000001\n")
    pile('"b" "a" > print 3 "3" = print [ ] dup = print [ ] not print "" not print', "1\n0\n0\n0\n1\n")


def test_strings_lists_and_tokens(pile):
    pile('"a\\"b" print "x"print 1[dup]call + print # end', 'a"b\nx\n2\n')
    pile('1 "q\\"\\n" 0 list 3 list dup print len print', '(1 "q\\"\\n" ())\n3\n')
    pile('1 2 2 list 3 1 list + print "naïve" len print "naïve" 2 get print', "(1 2 3)\n5\nï\n")
    pile('"-12" num 1 + print 5 str "!" + print a#b', "-11\n5!\n", "unknown at 1")
    pile("1 2 2 list 1 2 2 list = print", "1\n")


def test_blocks_and_loops(pile):
    pile("0 5 [ 1 + ] swap times print 3 [ 9 print ] drop 0 [ 8 print ] times", "", "type at 1")
    pile("0 5 [ 1 + ] times print -1 [ 8 print ] times", "5\n")
    pile("5 [ dup ] [ dup print 2 - dup 0 < [ drop 0 ] [ ] if ] while", "5\n3\n1\n")
    pile("0 1 2 3 3 list [ + ] each print 0 list [ print ] each", "6\n")
    pile('"" [ 1 ] [ 2 ] if print [ ] [ 1 ] [ 2 ] if print', "2\n1\n")


def test_words_and_variables(pile):
    pile(": sq dup * ; : twice =f $f call $f call ; 3 [ sq ] twice print", "81\n")
    pile(": a b ; : b 1 ; a print : b 2 ; a print : + drop drop 42 ; 1 1 + print", "1\n2\n42\n")
    pile("1 =x : x $x 1 + ; x print 5 =x x print $y", "2\n6\n", "unknown at 1")
    pile(": fib dup 2 < [ ] [ dup 1 - fib swap 2 - fib + ] if ; 15 fib print", "610\n")


def test_try_restores_the_stack(pile):
    pile('1 2 [ drop drop 0 0 / ] try print print print', "zero\n2\n1\n")
    pile('7 [ 5 =v "out" print drop "oops" fail ] try print print $v print', "out\noops\n7\n5\n")
    pile("1 [ 2 3 ] try print print print print", "0\n3\n2\n1\n")
    pile("[ [ 1 0 / ] try fail ] try print [ nope ] try print [ drop ] try print", "zero\nunknown\nunderflow\n")


def test_kinds_of_error(pile):
    pile('1 "a" +', "", "type at 1")
    pile('"a" +', "", "underflow at 1")
    pile("1\n2 list", "", "underflow at 2")
    pile('-1 list', "", "range at 1")
    pile('"abc" 3 get', "", "range at 1")
    pile('"4x" num', "", "range at 1")
    pile("[ ] print", "", "type at 1")
    pile('"my own" fail', "", "my own at 1")
    pile("1 [ 2 ] if", "", "underflow at 1")


def test_lines_of_errors(pile):
    pile(": f\n 1\n 0\n / ;\n\n1 print\nf", "1\n", "zero at 4")
    pile("1 =x\n[\n [ $x\n drop drop ] call ]\ncall", "", "underflow at 4")
    pile('# "\n"two\\n" print\n\n[ 1 ] [\n] if', "two\n\n", "underflow at 5")


def test_syntax_errors_run_nothing(pile):
    for program, line in (
        ("1 print ]", 1), ("1 print\n[ 2", 2), ('1 print\n\n"abc\n"', 3), ('"a\\q"', 1), ("1 print :", 1), (": 12 3 ;", 1), ("1\n;", 2),
        ("[ : a 1 ; ]", 1), (": a : b ; ;", 1), (": a\n[ 1 ;\n]", 2), ("[\n[ 1 ]\n", 1),
    ):  # fmt: skip
        pile(program, "", f"syntax at {line}")


def test_deep_calls(pile):
    pile(": down dup [ 1 - down ] [ ] if ; 4900 down print", "0\n")
    pile(": forever forever ;\n[ forever ] try print forever", "depth\n", "depth at 1")


def test_many_operations(pile):
    pile("0 =s 0 =i [ $i 30000 < ] [ $s $i + =s $i 1 + =i ] while $s print", "449985000\n", timeout=30)
