"""The layer below every image: this machine's programs in /usr, this process's Python in /usr/local, an /etc of its own.

A sandbox sees the host's /usr (read-only, the lowest layer) without /usr/local, and nothing else of the host's: no /etc,
no home, no environment. The folder is named by a digest of what it was made from, so another Python or another set of
system packages makes another base and images are built again.
"""

from __future__ import annotations

import compileall
import contextlib
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

REVISION = "3"  # raise it when the layout below changes
VERIFIER_PACKAGES = ("pytest", "pytest-json-ctrf", "iniconfig", "packaging", "pluggy", "pygments")
_FOLDERS = (
    "app", "boot", "dev", "etc", "home", "logs", "media", "mnt", "opt", "proc", "root", "run", "run/lock", "srv", "sys",
    "tmp", "usr", "var", "var/cache", "var/lib", "var/local", "var/log", "var/mail", "var/opt", "var/spool", "var/tmp",
    "logs/agent", "logs/verifier", "logs/artifacts", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial",
)  # fmt: skip
_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "lib32": "usr/lib32",
          "libx32": "usr/libx32", "var/run": "/run", "var/lock": "/run/lock"}  # fmt: skip
_PASSWD = (
    "root:x:0:0:root:/root:/bin/bash", "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin",
    "bin:x:2:2:bin:/bin:/usr/sbin/nologin", "sys:x:3:3:sys:/dev:/usr/sbin/nologin",
    "man:x:6:12:man:/var/cache/man:/usr/sbin/nologin", "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin",
    "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin", "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin",
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
)  # fmt: skip
_GROUPS = ("root:0", "daemon:1", "bin:2", "sys:3", "adm:4", "tty:5", "disk:6", "man:12", "mail:8", "sudo:27",
           "www-data:33", "shadow:42", "utmp:43", "staff:50", "users:100", "nogroup:65534")  # fmt: skip
# Configuration that programs of /usr need and that says nothing about the host or its people.
_COPIED = ("debian_version", "services", "protocols", "rpc", "mime.types", "magic", "login.defs", "inputrc", "host.conf",
           "ca-certificates.conf", "ssl/openssl.cnf", "ssl/certs/ca-certificates.crt", "locale.alias", "lsb-release",
           "debconf.conf", "adduser.conf", "deluser.conf", "ImageMagick-6/policy.xml", "fonts", "terminfo", "perl",
           "apt/trusted.gpg.d", "dpkg")  # fmt: skip
_SKIPPED = {"test", "tests", "idlelib", "turtledemo", "__pycache__", "site-packages", "dist-packages", "lib2to3"}


def digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def system_identity() -> list[str]:
    """What this machine's /usr is: the package manager's state (its size and time, and the release)."""
    found = []
    for path in ("/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite", "/lib/apk/db/installed", "/var/lib/pacman/local"):
        if Path(path).exists():
            info = Path(path).stat()
            found.append(f"{path} {info.st_size} {info.st_mtime_ns}")
    release = Path("/etc/os-release")
    return [*found, release.read_text() if release.exists() else "", os.uname().machine]


def base_key(first_uid: int) -> str:
    build = sysconfig.get_config_var("CONFIG_ARGS") or ""
    return digest(["base", REVISION, *system_identity(), sys.version, build, sys.base_prefix, str(first_uid)])


def system_name() -> str:
    """For people: which system stood in for a FROM."""
    text = Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""
    named = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.M)
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{named[1] if named else 'this system'}, Python {version}"


def build_base(folder: Path) -> None:
    """Fill `folder`/root (over /) and `folder`/usr (over /usr)."""
    if not Path("/bin").is_symlink():
        raise OSError(
            "this system keeps /bin apart from /usr/bin, which sandboxes cannot use: take the docker back end"
        )
    root, usr = folder / "root", folder / "usr"
    for name in _FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(0o1777)
    (root / "root").chmod(0o700)
    for name, target in _LINKS.items():
        if target.startswith("/") or Path("/", target).exists():
            (root / name).symlink_to(target)
    _write_etc(root / "etc")
    _copy_package_state(root)
    _own_folders(usr)
    for name in ("bin", "sbin", "lib", "include", "share", "etc", "src", "games"):
        (usr / "local" / name).mkdir(parents=True, exist_ok=True)
    os.setxattr(usr / "local", "user.overlay.opaque", b"y")  # what the host keeps there stays unseen
    copy_python(usr / "local")


def _own_folders(usr: Path) -> None:
    """The folders of /usr once more, as the sandbox's own: where the host's owners cannot be shown as they are (without
    root; on some file systems) a sandbox's root could otherwise install nothing. With root the upper ones are enough."""
    depth = 2 if os.geteuid() == 0 else 99
    for folder, names, _ in os.walk("/usr"):
        below = Path(folder).relative_to("/usr")
        if len(below.parts) >= depth:
            names.clear()
        names[:] = [
            name for name in names if Path(folder, name) != Path("/usr/local") and not Path(folder, name).is_symlink()
        ]
        (usr / below).mkdir(exist_ok=True)


def _write_etc(etc: Path) -> None:
    names = [row.split(":")[0] for row in _PASSWD]
    files = {
        "passwd": _PASSWD,
        "group": [f"{row.replace(':', ':x:')}:" for row in _GROUPS],
        "shadow": [f"{name}:*:19000:0:99999:7:::" for name in names],
        "shells": ["/bin/sh", "/bin/bash", "/usr/bin/bash", "/usr/bin/sh"],
        "hosts": ["127.0.0.1\tlocalhost sandbox", "::1\tlocalhost ip6-localhost ip6-loopback"],
        "hostname": ["sandbox"],
        "nsswitch.conf": ["passwd: files", "group: files", "shadow: files", "hosts: files dns", "services: files"],
        "ld.so.conf": ["/usr/local/lib", "include /etc/ld.so.conf.d/*.conf"],
        "profile": [f'export PATH="${{PATH:-{_PATH}}}"', "for f in /etc/profile.d/*.sh; do [ -r $f ] && . $f; done", "unset f"],
        "bash.bashrc": ['[ -z "$PS1" ] || PS1="\\u@\\h:\\w\\$ "'],
        "environment": [], "fstab": [], "motd": [], "resolv.conf": [], "subuid": [], "subgid": [],
        "pip.conf": ["[global]", "break-system-packages = true", "disable-pip-version-check = true", "root-user-action = ignore"],
        "apt/apt.conf.d/sandbox": ['APT::Sandbox::User "root";', 'Dpkg::Use-Pty "0";'],
        "timezone": ["Etc/UTC"],
    }  # fmt: skip
    for name, lines in files.items():
        path = etc / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
    (etc / "shadow").chmod(0o640)
    for name in ("ld.so.conf.d", "profile.d", "skel", "default", "init.d", "cron.d", "opt", "security"):
        (etc / name).mkdir(exist_ok=True)
    for name, target in {
        "localtime": "/usr/share/zoneinfo/Etc/UTC",
        "os-release": "../usr/lib/os-release",
        "mtab": "../proc/self/mounts",
    }.items():
        (etc / name).symlink_to(target)
    for path in Path("/etc/ld.so.conf.d").glob("*-linux-gnu*.conf"):
        shutil.copy(path, etc / "ld.so.conf.d" / path.name)
    _copy_configuration(etc)


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _copy_configuration(etc: Path) -> None:
    for name in _COPIED:
        source, target = Path("/etc", name), etc / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            elif source.is_file():
                shutil.copyfile(source, target)
        except (OSError, shutil.Error):  # what an ordinary user may not read is not for a sandbox either
            continue
    for folder in ("alternatives",):  # `cc`, `awk`, `editor` and their kind
        (etc / folder).mkdir(exist_ok=True)
        for link in Path("/etc", folder).glob("*"):
            if link.is_symlink() and str(link.readlink()).startswith(
                ("/usr/bin", "/usr/lib", "/usr/sbin", "/usr/share", "/bin", "/lib")
            ):
                (etc / folder / link.name).symlink_to(link.readlink())


def _copy_package_state(root: Path) -> None:
    """What `apt-get install` needs in a build: which packages /usr holds, and where the host gets them from."""
    if not Path("/var/lib/dpkg/status").is_file():
        return
    with contextlib.suppress(shutil.Error):  # an ordinary user cannot read the locks, and nobody needs them
        shutil.copytree("/var/lib/dpkg", root / "var/lib/dpkg", symlinks=True)
    (root / "var/lib/dpkg/statoverride").write_text("")  # it names groups that only the host has
    (root / "etc/apt/preferences.d").mkdir(parents=True, exist_ok=True)
    for source in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]:
        if source.is_file() and "@" not in (text := source.read_text(errors="replace")):  # no password goes in
            target = root / str(source)[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)


def copy_python(prefix: Path) -> None:
    """The running CPython below `prefix`, without tests, caches and what was installed into it; `python` and `pip`."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library, binary = prefix / "lib" / version, prefix / "bin"
    binary.mkdir(parents=True, exist_ok=True)
    executable = Path(sys.base_prefix, "bin", version)
    if not executable.exists():
        executable = Path(os.path.realpath(sys.executable))
    shutil.copy(executable, binary / version)
    shutil.copytree(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}),
                    library, symlinks=True, ignore=_skip, dirs_exist_ok=True)  # fmt: skip
    (library / "site-packages").mkdir(exist_ok=True)
    headers = Path(sysconfig.get_path("include"))
    if headers.is_dir():
        shutil.copytree(headers, prefix / "include" / version, dirs_exist_ok=True)
    _copy_libraries(binary / version, library / "lib-dynload", prefix / "lib")
    for name in ("python3", "python"):
        (binary / name).symlink_to(version)
    _add_pip(library / "site-packages", binary, version)
    compileall.compile_dir(str(library), quiet=2, workers=1, stripdir=str(prefix), prependdir="/usr/local")


def _skip(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in _SKIPPED or name.endswith((".a", ".o")) or name == "EXTERNALLY-MANAGED"}


def _copy_libraries(executable: Path, modules: Path, target: Path) -> None:
    """Shared libraries that Python needs and that lie outside what a sandbox sees of the host."""
    asked = [str(executable), *map(str, modules.glob("*.so"))]
    library_path = {"LD_LIBRARY_PATH": str(Path(sys.base_prefix, "lib"))} if sys.base_prefix != "/usr" else {}
    shown = subprocess.run(["ldd", *asked], capture_output=True, text=True, env={**os.environ, **library_path}).stdout
    for path in {Path(found) for found in re.findall(r"=> (/\S+)", shown)}:
        if not str(path).startswith(("/usr/lib", "/lib")) and path.exists():
            shutil.copy(path, target / path.name)


def _add_pip(site: Path, binary: Path, version: str) -> None:
    wheels = sorted(Path(sys.base_prefix, "lib", version, "ensurepip", "_bundled").glob("pip-*.whl"))
    wheels += sorted(Path("/usr/share/python-wheels").glob("pip-*.whl"))
    if not wheels:
        return
    shutil.unpack_archive(wheels[0], site, "zip")
    for name in ("pip", "pip3"):
        script = binary / name
        script.write_text(
            f"#!/usr/local/bin/{version}\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n"
        )
        script.chmod(0o755)


_START = Path(__file__).with_name("verifier_start.py")


def verifier_key(first_uid: int) -> str:
    versions = [f"{name} {importlib.metadata.version(name)}" for name in VERIFIER_PACKAGES]
    return digest(["verifier", base_key(first_uid), _START.read_text(), *versions])


def build_verifier(folder: Path) -> None:
    """`folder` is mounted at /opt/verifier: a Python of its own with pytest and the CTRF plug-in, which also sees what the
    image installed. bin/python, bin/python3, bin/pytest; start it isolated (`-I`) and nothing of the agent's is read."""
    copy_python(folder)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    for package in VERIFIER_PACKAGES:
        _copy_distribution(package, site)
    shutil.copyfile(_START, site / "workbench_verifier_start.py")
    (site / "zz_image.pth").write_text(f"/usr/local/lib/{version}/site-packages\n")
    (site / "zzz_start.pth").write_text("import workbench_verifier_start\n")
    for name in ("pip", "pip3"):
        (folder / "bin" / name).unlink(missing_ok=True)
    script = folder / "bin" / "pytest"
    script.write_text(
        f"#!/opt/verifier/bin/{version} -I\nimport sys\nfrom pytest import console_main\nsys.exit(console_main())\n"
    )
    script.chmod(0o755)
    compileall.compile_dir(str(site), quiet=2, workers=1, stripdir=str(folder), prependdir="/opt/verifier")


def _copy_distribution(name: str, site: Path) -> None:
    for file in importlib.metadata.files(name) or ():
        source = Path(file.locate())
        if ".." in file.parts or "__pycache__" in file.parts or not source.is_file():
            continue
        target = site / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
