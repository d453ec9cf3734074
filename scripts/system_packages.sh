#!/bin/sh
# Install Debian packages whose program is missing: PROGRAM:PACKAGE …; never fails, tells what is left.
for pair in "$@"; do
  program=${pair%%:*} package=${pair#*:}
  command -v "$program" >/dev/null || ls /usr/lib/postgresql/*/bin/"$program" >/dev/null 2>&1 && continue
  missing="$missing $package"
done
[ -z "$missing" ] && exit 0
run=""
[ "$(id -u)" = 0 ] || run="sudo -n"
echo "installing$missing for the tests …"
{ $run apt-get update -qq && DEBIAN_FRONTEND=noninteractive $run apt-get install -y -qq --no-install-recommends $missing; } \
  >/dev/null 2>&1 || echo "could not install$missing: the tests that need them will be skipped"
exit 0
