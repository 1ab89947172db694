#!/bin/sh
# Chromium and its driver for the tests in tests/browser, from the distribution's own packages.
#
#   sh scripts/install_browser.sh
#
# Does nothing where both are there. Exit codes: 0 both are there now, 3 they cannot be had here (the reason is on stderr).
set -eu
say() { printf 'browser: %s\n' "$*" >&2; }
unable() { say "no headless Chromium here: $*"; exit 3; }
found() { command -v chromedriver >/dev/null 2>&1 && { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null 2>&1; }

found && exit 0
[ "$(id -u)" = 0 ] || unable "not root, so nothing can be installed (Debian: apt install chromium chromium-driver)"
command -v apt-get >/dev/null 2>&1 || unable "no apt-get: install Chromium and chromedriver by hand"
. /etc/os-release
# Ubuntu's package of this name is a door to a snap, which containers cannot run.
[ "${ID:-}" = debian ] || unable "packages of ${PRETTY_NAME:-this system} are not known to work: install Chromium and chromedriver by hand"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-unsafe-io chromium chromium-driver >"$log" 2>&1; }
say "installing chromium and chromium-driver"
# Lists that are missing or old are the usual reason for a failure: fetch them then, and only then.
install || { apt-get update -qq >>"$log" 2>&1 || true; install; } || { tail -n 5 "$log" >&2; unable "apt-get could not install chromium"; }
found || unable "the packages chromium and chromium-driver did not bring both programs"
