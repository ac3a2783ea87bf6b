#!/bin/sh
# What step.sh measures, to be measured by other commands: FOLDER/spleen.ini, fast.ini (the same network with
# 32 to 512 channels), segresnet.ini and dynunet.ini, and the made-up cases that they read.
#
#   tests/peers/files.sh PONS FOLDER
. "$(dirname "$0")/rounds.sh"

[ -n "${2:-}" ] || refuse "no FOLDER"
keep "$2"
networks
