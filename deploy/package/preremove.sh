#!/bin/sh
# Stops the agent when the package goes, not when it is replaced: dpkg says "remove", rpm says 0.
set -e
case "$1" in
remove | 0)
  if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
    systemctl --no-reload disable --now sbr-agent.service
  fi
  ;;
esac
