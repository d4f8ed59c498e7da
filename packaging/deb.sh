#!/bin/sh
# SPDX-License-Identifier: MIT
# deb.sh FOLDER BUILD VERSION: FOLDER/pperf_VERSION_ARCH.deb of what is built in BUILD.
set -eu
folder=$1 build=$2 version=$3
architecture=$(dpkg --print-architecture)
name=pperf_${version}-1_$architecture
tree=$folder/$name
doc=$tree/usr/share/doc/pperf

rm -rf "$tree" "$folder/debian"
mkdir -p "$folder/debian" "$doc"
make --no-print-directory -s BUILD="$build" DESTDIR="$(readlink -f "$tree")" PREFIX=/usr LIBDIR="/usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)" install > /dev/null
mkdir -p "$tree/usr/lib/python3"
mv "$tree/usr/share/pperf/python" "$tree/usr/lib/python3/dist-packages"
mv "$tree/usr/share/zsh/site-functions" "$tree/usr/share/zsh/vendor-completions"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$tree/usr/bin/pperf-report"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$tree"/usr/lib/*/libpperf.so
find "$tree/usr/share/man" -type f -exec gzip -9n {} +
sed 's|@VERSION@|'"$version"'|' packaging/changelog | gzip -9n > "$doc/changelog.Debian.gz"
install -m 644 packaging/copyright "$doc/copyright"
install -m 644 -D packaging/lintian-overrides "$tree/usr/share/lintian/overrides/pperf"

mkdir "$tree/DEBIAN"
echo 'Source: pperf
Package: pperf
Architecture: any' > "$folder/debian/control"
needs=$(cd "$folder" && dpkg-shlibdeps -O --ignore-missing-info "$name/usr/bin/pperf-report" "$name"/usr/lib/*/libpperf.so 2> /dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$needs" ] || { echo 'deb: dpkg-shlibdeps does not say what the package needs' >&2; exit 1; }
cat > "$tree/DEBIAN/control" <<END
Package: pperf
Version: $version-1
Architecture: $architecture
Maintainer: the pperf authors <pperf@authors.invalid>
Installed-Size: $(du -k -s "$tree/usr" | cut -f1)
Depends: $needs
Suggests: libunwind8
Section: devel
Priority: optional
Description: profiler for GPU programs that follows the program's own structure
 libpperf.so, preloaded into an unmodified CUDA or PyTorch program, records
 where GPU time, CPU time and memory go: steps, modules, operators, NVTX
 ranges, down to the kernels. pperf-report shows it as a tree, worst instance
 first, and one run against another. It also reads traces of torch.profiler
 and Nsight Systems.
END
(cd "$tree" && find usr -type f -exec md5sum {} + | LC_ALL=C sort -k2 > DEBIAN/md5sums)
chmod -R u+w,go-w,a+rX "$tree"
dpkg-deb --root-owner-group --build "$tree" "$folder/$name.deb" > /dev/null
rm -rf "$folder/debian"
echo "$folder/$name.deb: apt install ./$name.deb"
