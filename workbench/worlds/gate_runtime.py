"""The program that runs each role of a generator in a process of its own and reports what it reached.

Kept as text: it runs in a fresh interpreter (-I), forks once a role, and answers {role: {modules, events, error}} as JSON.
Events are of the interpreter's audit hooks: files opened outside the interpreter's own library, processes, connections, code run from text.
"""

from __future__ import annotations

PROGRAM = r"""
import json, os, sys
sys.path.insert(0, sys.argv[1])
import workbench.worlds.formats, workbench.worlds.generators as generators
ask = json.load(sys.stdin)
generators.__path__.insert(0, ask["place"])
__import__("workbench.worlds.generators." + ask["name"])
prefix = "workbench.worlds.generators." + ask["name"] + "."
tree = {k: bytes.fromhex(v) for k, v in ask["public"].items()}
output = {k: bytes.fromhex(v) for k, v in ask["output"].items()}
LIBRARY = tuple({os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__))})
TELL = ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.posix_spawn", "socket.connect", "socket.bind", "ctypes.dlopen",
        "exec", "import", "open", "shutil.rmtree", "os.remove", "os.rename", "os.listdir", "os.scandir")

def child(role, write):
    events, armed = [], [False]
    own = prefix + role
    def hook(event, args):
        if not armed[0] or event not in TELL:
            return
        if event == "open":
            path = args[0]
            if isinstance(path, bytes):
                path = os.fsdecode(path)
            if not isinstance(path, str):
                return
            path = os.path.realpath(path)
            if path.startswith(LIBRARY) or path.startswith(formats) or os.path.basename(path).split(".")[0] == role:
                return
            events.append("open " + path)
        elif event == "import":
            name = args[0]
            if name.startswith("workbench") and name != own and not name.startswith("workbench.worlds.formats"):
                events.append("import " + name)
        elif event == "exec":
            name = getattr(args[0], "co_filename", "")
            path = os.path.realpath(name)
            if name.startswith("<frozen") or path.startswith(LIBRARY) or path.startswith(formats) or path.endswith(os.sep + role + ".py"):
                return
            if name.startswith("<string>") and getattr(args[0], "co_name", "") == "<module>" and not armed[0]:
                return
            if name.startswith(("<attrs", "<dataclass", "<string>")) and defining(sys._getframe(1)):
                return  # namedtuple and dataclass build themselves from text
            events.append("exec of " + name)
        elif event in ("os.listdir", "os.scandir"):
            path = os.path.realpath(args[0] if isinstance(args[0], str) else ".")
            if not path.startswith(LIBRARY) and not sys._getframe(1).f_code.co_filename.startswith("<frozen"):
                events.append(event + " " + path)
        else:
            events.append(event)
    def defining(frame):
        while frame is not None:
            if os.path.basename(frame.f_code.co_filename) in ("dataclasses.py", "__init__.py") and os.path.realpath(
                    frame.f_code.co_filename).startswith(LIBRARY):
                return True
            frame = frame.f_back
        return False
    formats = os.path.realpath(os.path.dirname(workbench.worlds.formats.__file__))
    sys.addaudithook(hook)
    before, error = set(sys.modules), ""
    armed[0] = True
    try:
        module = __import__(own, fromlist=["x"])
        if role == "reference":
            list(module.solve(tree))
        elif role == "alternative":
            module.solve(tree)
        elif role == "verify":
            module.verify(ask["truth"], output)
        else:
            module.score(ask["truth"], output)
    except BaseException as raised:
        error = type(raised).__name__ + ": " + str(raised)[:300]
    armed[0] = False
    modules = sorted(m for m in set(sys.modules) - before if m.startswith("workbench"))
    with os.fdopen(write, "w") as out:
        json.dump({"modules": modules, "events": sorted(set(events)), "error": error}, out)

report = {}
for role in ask["roles"]:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            child(role, write)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    report[role] = json.loads(text) if text else {"modules": [], "events": [], "error": "the process died"}
print(json.dumps(report))
"""
