"""What the harbor back end runs inside an environment, where Harbor's interface itself cannot do something.

Harbor's `exec` has no standard input, no bound on output, and on most types a timeout ends only the client. So each
command runs under a small Python program that keeps those promises. It needs python3 in the image and, like
everything that runs inside, believes the programs it finds there.
"""

from __future__ import annotations

# Runs one command. Argument: base64 of a JSON request, or @FILE holding it. Answers with one JSON line.
RUNNER = r"""
import base64, ctypes, json, os, select, signal, subprocess, sys, time
text = sys.argv[1]
if text[:1] == "@":
    with open(text[1:]) as f: text = f.read()
ask = json.loads(base64.b64decode(text))
for path in ask["remove"]:
    try: os.unlink(path)
    except OSError: pass
limit, end = ask["limit"], time.monotonic() + ask["timeout"]
def say(code, kept=None, killed=None):
    kept = kept or {}
    out = {"code": code, "killed_by": killed}
    for name in ("out", "err"):
        head, tail, total = kept.get(name, (b"", b"", 0))
        out[name] = [base64.b64encode(head).decode(), base64.b64encode(tail).decode(), total]
    sys.stdout.write("\n" + ask["mark"] + json.dumps(out) + "\n"); sys.stdout.flush(); os._exit(0)
try: ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
except Exception: pass
def table():
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as f: rest = f.read().rpartition(b")")[2].split()
                if rest[0] not in (b"Z", b"X"): found[int(name)] = int(rest[1])
            except (OSError, IndexError): pass
    return found
def below(root):
    parents, chosen = table(), []
    for pid in parents:
        at = pid
        while at in parents and at != root: at = parents[at]
        if at == root and pid != root: chosen.append(pid)
    return chosen
def sweep():
    for _ in range(500):
        left = below(os.getpid())
        if not left: return
        for pid in left:
            try: os.kill(pid, signal.SIGKILL)
            except OSError: pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]: pass
        except OSError: pass
        time.sleep(0.005)
env = dict(os.environ); env.update(ask["env"])
stdin = open(ask["stdin"], "rb") if ask["stdin"] else subprocess.DEVNULL
if ask["stdin"]:
    try: os.unlink(ask["stdin"])
    except OSError: pass
try:
    p = subprocess.Popen(ask["argv"], cwd=ask["cwd"] or None, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
except OSError as error:
    message = ("%s\n" % error).encode()
    say(126 if isinstance(error, PermissionError) else 127, {"err": (message, b"", len(message))})
half = limit // 2
kept, fds = {"out": [b"", b"", 0], "err": [b"", b"", 0]}, {p.stdout.fileno(): "out", p.stderr.fileno(): "err"}
def feed(name, data):
    k = kept[name]; k[2] += len(data)
    room = half - len(k[0])
    if room > 0: k[0] += data[:room]; data = data[room:]
    if data: k[1] = (k[1] + data)[-(limit - half):] if limit > half else b""
def pump(wait):
    got = False
    for fd in (select.select(list(fds), [], [], wait)[0] if fds else []):
        data = os.read(fd, 1 << 16)
        if data: got = True; feed(fds[fd], data)
        else: del fds[fd]
    if not fds and wait: time.sleep(min(wait, 0.01))
    return got
killed = None
while p.poll() is None:
    pump(0.05)
    if time.monotonic() > end:
        killed = "time"; sweep(); break
stop = time.monotonic() + 1
while fds and time.monotonic() < stop and pump(0.02): pass
code = p.poll()
say(124 if killed else (128 - code if code is not None and code < 0 else (code or 0)), kept, killed)
"""

# Kills all but what was alive at the start, itself and its parents. Arguments: pid:start of each spared process.
# Only words that a shell has built in. Prints how many it killed.
KILL_ALL = r"""
spared=" $* "; killed=0; quiet=0
fields() { IFS= read -r line 2>/dev/null <"/proc/$1/stat" || return 1; set -- ${line##*) }; state=$1 parent=$2 start=${20}; }
mine=" "; at=$$
while [ "$at" -gt 0 ] 2>/dev/null && fields "$at"; do mine="$mine$at "; at=$parent; done
round=0
while [ "$quiet" -lt 2 ] && [ "$round" -lt 400 ]; do
  round=$((round + 1)); found=0
  for entry in /proc/[0-9]*; do
    pid=${entry#/proc/}
    case $mine in *" $pid "*) continue ;; esac
    fields "$pid" || continue
    case $state in Z|X) continue ;; esac
    case $spared in *" $pid:$start "*) continue ;; esac
    kill -9 "$pid" 2>/dev/null && { killed=$((killed + 1)); found=1; }
  done
  if [ "$found" = 0 ]; then quiet=$((quiet + 1)); else quiet=0; fi
done
echo "killed $killed left $found"
"""

# What is alive, as pid:start, to be spared later.
ALIVE = r"""
for entry in /proc/[0-9]*; do
  pid=${entry#/proc/}
  IFS= read -r line 2>/dev/null <"$entry/stat" || continue
  set -- ${line##*) }
  [ "$pid" = $$ ] || printf '%s:%s ' "$pid" "${20}"
done
"""

# Facts of a fresh environment.
PROBE = r"""
echo "workdir=$PWD"; echo "user=$(id -un 2>/dev/null || id -u)"
command -v python3 >/dev/null && echo python=yes; command -v bash >/dev/null && echo bash=yes
"""

# A tar of one path into a file, cut off after a number of bytes. $1 path, $2 tar file, $3 bytes.
PACK = r"""
[ -e "$1" ] || [ -L "$1" ] || exit 44
case $1 in */*) folder=${1%/*} ;; *) folder=. ;; esac
(umask 077; tar -C "${folder:-/}" -cf - --ignore-failed-read -- "${1##*/}" 2>/dev/null | head -c "$3" >"$2")
[ -f "$2" ] && chmod 644 "$2"
"""

_FIND = r"""find / -xdev ( -path /proc -o -path /sys -o -path /dev -o -path '/tmp/.workbench-*' ) -prune -o"""
_FIND = _FIND.replace("(", "\\(").replace(")", "\\)")

# Every path there is, NUL-separated, into the file $1.
PATHS = f"""
{_FIND} -print0 >"$1" 2>/dev/null
chmod 644 "$1"
"""

# What changed since the moment $1: one tar ($2) of new and modified paths; and every path there is ($3).
# The time of a file's last change of state is the kernel's, so no program can set it back.
CHANGES = f"""
{_FIND} -newerct "$1" ! -type s ! -path / -print0 >"$2.list" 2>/dev/null
tar -C / --no-recursion --null -T "$2.list" --ignore-failed-read -cf "$2" 2>/dev/null
{_FIND} -print0 >"$3" 2>/dev/null
rm -f "$2.list"
chmod 644 "$2" "$3"
"""
