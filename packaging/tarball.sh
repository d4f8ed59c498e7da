#!/bin/sh
# SPDX-License-Identifier: MIT
# tarball.sh FOLDER NAME: FOLDER/NAME.tar.gz of FOLDER/NAME; the same bytes from the same files.
set -eu
cd "$1"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -cf - "$2" | gzip -9n > "$2.tar.gz.new"
mv "$2.tar.gz.new" "$2.tar.gz"
newest=$(readelf -VW "$2/lib/libpperf.so" "$2/bin/pperf-report" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
echo "$1/$2.tar.gz: needs $newest or later; unpack it anywhere, then bin/pperf run -- COMMAND"
