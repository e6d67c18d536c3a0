#!/bin/sh
# Makes the user. Nothing is started, for there is no configuration yet, and after an update nothing is restarted: which node goes when is
# the operator's to say.
set -e
root="${DPKG_ROOT:-}"
if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers ${root:+--root="$root"} sbr.conf
fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
