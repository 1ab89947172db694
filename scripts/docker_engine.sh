#!/bin/sh
# A real Docker engine for the tests, also where no registry of images can be reached.
#
#   eval "$(sh scripts/docker_engine.sh start [STATE_DIR])"    prints `export DOCKER_HOST=...`; progress goes to stderr
#   sh scripts/docker_engine.sh status|stop [STATE_DIR]
#
# start: takes the engine that already answers (DOCKER_HOST is respected); else, as root on Debian or Ubuntu, installs
# what is missing from the distribution's own packages and starts a private one. Images that the tests build from are
# pulled, or made with debootstrap from the mirror that apt uses and tagged with the usual names.
# stop: only what start started; takes away its bridge and rules, and puts IP forwarding back. STATE_DIR keeps its data.
# Exit codes: 0 done, 3 no engine can be had here (the reason is on stderr), 2 wrong usage.
set -eu
command=${1:-}
home=${WORKBENCH_HOME:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/workbench}
state=${2:-$home/docker-engine}
case $state in /*) ;; *) state=$PWD/$state ;; esac
# Sockets live in a short path: a Unix socket's name may have 107 bytes only.
run=/run/workbench-docker-$(printf %s "$state" | cksum | cut -d' ' -f1)
socket=unix://$run/docker.sock
tags="python:3.12-slim python:3.13-slim ubuntu:24.04 debian:bookworm-slim"

say() { printf 'docker-engine: %s\n' "$*" >&2; }
unable() { say "no Docker engine here: $*"; ! ours || stop; exit 3; }
answers() { command -v docker >/dev/null 2>&1 && timeout 20 docker info >/dev/null 2>&1; }
ours() { [ -s "$run/docker.pid" ] && kill -0 "$(cat "$run/docker.pid")" 2>/dev/null; }
has_image() { docker image inspect "$1" >/dev/null 2>&1; }

# ---------------------------------------------------------------- packages
installable() { apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'; }
apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  if [ ! -e "$run/apt-updated" ]; then
    apt-get update -qq >&2 || say "apt-get update reported errors; going on with the lists at hand"
    : >"$run/apt-updated"
  fi
  say "installing $*"
  apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "$@" >"$state/apt.log" 2>&1 ||
    { tail -n 5 "$state/apt.log" >&2; unable "apt-get could not install $* (log: $state/apt.log)"; }
}
need() { for name in "$@"; do command -v "$name" >/dev/null 2>&1 || return 1; done; }
install_engine() {
  need dockerd iptables docker && return 0
  packages="docker.io iptables"
  need docker || ! installable docker-cli || packages="$packages docker-cli"
  apt_install $packages
  need dockerd iptables docker || unable "the packages $packages did not bring dockerd, iptables and docker"
}

# ---------------------------------------------------------------- base image
# Debian's base is the newest stable that any Python of the tests can use; Ubuntu's is the machine's own release.
suite() {
  . /etc/os-release
  case "${ID:-}:${VERSION_CODENAME:-}" in
    debian:bullseye | debian:bookworm | debian:trixie) echo trixie ;;
    *) echo "${VERSION_CODENAME:-}" ;;
  esac
}
# The mirror: the first http(s) URI of apt's own sources that serves the distribution itself.
mirror() {
  . /etc/os-release
  { apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' "Created-By: Packages" 2>/dev/null || true; } |
    awk -v suite="${VERSION_CODENAME:-}" '$2 == suite && $3 == "main" {print $1; exit}'
}
make_rootfs() { # $1: the tarball to make. Runs in the background while the engine is installed.
  root=$state/rootfs.$$
  rm -rf "$root"
  mkdir -p "$root" "$(dirname "$1")"
  debootstrap --variant=minbase --include=python3,python3-pytest "$(suite)" "$root" "$(mirror)" >"$state/debootstrap.log" 2>&1 || return 1
  ln -sf python3 "$root/usr/bin/python"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/doc/* "$root"/usr/share/locale/*
  tar -C "$root" --numeric-owner --one-file-system -cf "$1.part" . && mv "$1.part" "$1"
  status=$?
  rm -rf "$root"
  return $status
}
start_rootfs() {
  tarball=$home/docker-base/$(suite)-$(dpkg --print-architecture).tar
  [ -s "$tarball" ] && return 0
  need debootstrap || apt_install debootstrap
  [ -n "$(mirror)" ] || unable "apt's sources name no mirror for $(suite)"
  say "making a base image of $(suite) with debootstrap (about a minute)"
  make_rootfs "$tarball" & rootfs_job=$!
}
missing_tags() { for tag in $tags; do has_image "$tag" || printf '%s ' "$tag"; done; }
make_images() {
  missing=$(missing_tags)
  [ -n "$missing" ] || return 0
  pulled=yes
  for tag in $missing; do timeout 120 docker pull -q "$tag" >/dev/null 2>&1 || { pulled=; break; }; done
  if [ -n "$pulled" ]; then
    [ -z "${rootfs_job:-}" ] || kill "$rootfs_job" 2>/dev/null || true
    return 0
  fi
  [ "$(id -u)" = 0 ] && need apt-get dpkg ||
    unable "the engine lacks $missing, they cannot be pulled, and making them needs root on Debian or Ubuntu"
  [ -n "${rootfs_job:-}" ] || start_rootfs
  [ -z "${rootfs_job:-}" ] || wait "$rootfs_job" || { tail -n 3 "$state/debootstrap.log" >&2; unable "debootstrap failed (log: $state/debootstrap.log)"; }
  say "importing the base image"
  image=$(docker import --change 'CMD ["bash"]' --change "LABEL workbench.base=$(suite)" "$tarball")
  for tag in $(missing_tags); do docker tag "$image" "$tag"; done
}

# ---------------------------------------------------------------- engine
remember_network() {
  [ -e "$run/before" ] && return 0
  { cat /proc/sys/net/ipv4/ip_forward; iptables -S FORWARD 2>/dev/null | awk '$1 == "-P" {print $3}'; } >"$run/before"
}
restore_network() {
  ! pgrep -x dockerd >/dev/null 2>&1 || return 0 # another engine's bridge and rules are not ours to remove
  for link in docker0 $(ip -o link show type bridge 2>/dev/null | sed -n 's/^[0-9]*: \(br-[0-9a-f]\{12\}\).*/\1/p'); do
    ip link delete "$link" 2>/dev/null || true
  done
  for table in nat filter; do
    iptables-save -t $table 2>/dev/null | grep -viE 'docker|br-[0-9a-f]{12}' >"$run/rules" && iptables-restore -T $table <"$run/rules" || true
  done
  [ -s "$run/before" ] || return 0
  { read -r forward; read -r policy || true; } <"$run/before"
  [ -z "${policy:-}" ] || iptables -P FORWARD "$policy"
  echo "$forward" >/proc/sys/net/ipv4/ip_forward
}
start_engine() {
  remember_network
  # Without a bridge (kernels that lack what it needs) only no-network and allowlist sandboxes can be had.
  launch --ip6tables=false --userland-proxy=false && return 0
  say "dockerd did not start with a bridge; trying without"
  stop
  mkdir -p "$run"
  launch --bridge=none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false && return 0
  tail -n 5 "$state/dockerd.log" >&2
  stop
  unable "dockerd did not answer (log: $state/dockerd.log)"
}
launch() {
  say "starting dockerd"
  setsid nohup dockerd --data-root "$state/data" --exec-root "$run/exec" --pidfile "$run/docker.pid" -H "$socket" "$@" \
    >"$state/dockerd.log" 2>&1 </dev/null &
  daemon=$!
  for _ in $(seq 300); do
    answers && return 0
    kill -0 "$daemon" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}
start() {
  if answers; then
    say "using the engine that answers at ${DOCKER_HOST:-the default socket}"
  else
    export DOCKER_HOST=$socket
    if ! { ours && answers; }; then
      [ "$(id -u)" = 0 ] || unable "none answers, and starting one needs root"
      need apt-get dpkg || unable "none answers, and this script installs one on Debian and Ubuntu only"
      mkdir -p "$state" "$run"
      [ -n "$(ls "$state/data/image/overlay2/repositories.json" 2>/dev/null)" ] || start_rootfs
      install_engine
      start_engine
    fi
  fi
  mkdir -p "$state" 2>/dev/null || true
  make_images
  [ -z "${DOCKER_HOST:-}" ] || echo "export DOCKER_HOST=$DOCKER_HOST"
}
stop() {
  [ -d "$run" ] || return 0
  if ours; then
    pid=$(cat "$run/docker.pid")
    containers=$(docker -H "$socket" ps -q 2>/dev/null || true)
    [ -z "$containers" ] || docker -H "$socket" rm -f $containers >/dev/null 2>&1 || true
    docker -H "$socket" network prune -f >/dev/null 2>&1 || true
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 150); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
  fi
  restore_network
  awk -v run="$run/" -v data="$state/data/" 'index($2, run) == 1 || index($2, data) == 1 {print $2}' /proc/mounts | sort -r |
    while read -r mount; do umount -l "$mount" || true; done
  for group in /sys/fs/cgroup/docker /sys/fs/cgroup/*/docker; do
    [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  rm -rf "$run"
}

case $command in
  start) start ;;
  stop) stop ;;
  status)
    if answers; then
      say "an engine answers at ${DOCKER_HOST:-the default socket}"
    elif ours && DOCKER_HOST=$socket answers; then
      say "running at $socket (state: $state)"
      echo "export DOCKER_HOST=$socket"
    else
      say "not running"
      exit 3
    fi
    ;;
  *)
    echo "usage: docker_engine.sh start|stop|status [STATE_DIR]" >&2
    exit 2
    ;;
esac
