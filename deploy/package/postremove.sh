#!/bin/sh
# The user and /var/lib/sbr stay: the lease may lie there.
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
