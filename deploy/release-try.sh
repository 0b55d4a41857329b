#!/usr/bin/env bash
# Tries every file of the release in dist, beside which is the source that it was made of. It needs
# root on Debian, with dpkg, rpm, skopeo and man-db. CONTRIBUTING.md lists what is
# checked. The first failure ends it.
set -euo pipefail
source=$PWD
dist=$source/dist
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
say() { echo "== $*"; }

cd "$dist"
sha256sum --check --quiet --strict SHA256SUMS

say "archive, packages, wheel and image hold the same program"
mkdir "$work/oci"
tar -xf ndls-*-image.tar -C "$work/oci"
tag=$(sed -n 's/.*"org.opencontainers.image.ref.name":"\([^"]*\)".*/\1/p' "$work/oci/index.json")
for arch in amd64:x86_64:x86_64 arm64:aarch64:aarch64; do
  IFS=: read -r go wheel rpm <<<"$arch"
  unpacked=$work/$go
  mkdir -p "$unpacked"/{archive,deb,rpm,wheel,image}
  tar -xzf ndls-*-linux-"$go".tar.gz -C "$unpacked/archive" --strip-components=1
  dpkg-deb --extract ndls_*_"$go".deb "$unpacked/deb"
  rpm --root "$unpacked/rpm" --install --nodeps --nosignature --ignorearch ndls-*."$rpm".rpm 2>/dev/null
  rpm --root "$unpacked/rpm" --verify ndls
  python3 -m zipfile -e ndls_graph-*"$wheel".whl "$unpacked/wheel"
  skopeo copy --quiet --override-arch "$go" "oci:$work/oci:$tag" "dir:$unpacked/layers"
  for layer in "$unpacked"/layers/*; do
    if tar -tzf "$layer" >/dev/null 2>&1; then tar -xzf "$layer" -C "$unpacked/image"; fi
  done
  want=$(sha256sum <"$unpacked/archive/bin/ndls")
  if grep -qF "$source" "$unpacked/archive/bin/ndls"; then echo "$go: the program holds the name of the folder it was built in" >&2; exit 1; fi
  for program in deb/usr/bin/ndls rpm/usr/bin/ndls wheel/ndls/bin/ndls image/ndls; do
    [ "$(sha256sum <"$unpacked/$program")" = "$want" ] || { echo "$go: $program is another program" >&2; exit 1; }
  done
  for package in deb rpm; do diff -r --exclude=lintian "$unpacked/archive/share" "$unpacked/$package/usr/share"; done
  rm "$unpacked/image/licences/LICENSE" # that of the wheel lies elsewhere
  diff -r "$unpacked/image/licences" "$unpacked/wheel/ndls/licences"
done
here=$work/$(dpkg --print-architecture)
"$here/archive/bin/ndls" --version

say "dpkg installs the package and removes it again"
root=$work/root
mkdir -p "$root"/var/lib/dpkg/{info,updates} "$root/usr"
touch "$root"/var/lib/dpkg/{status,available}
dpkg --root="$root" --force-script-chrootless --install ndls_*_"$(dpkg --print-architecture)".deb >/dev/null
dpkg --root="$root" --status ndls | grep -x 'Status: install ok installed'
"$root/usr/bin/ndls" version
dpkg --root="$root" --force-script-chrootless --purge ndls >/dev/null
if [ -e "$root/usr/bin/ndls" ]; then echo "dpkg left files" >&2; exit 1; fi

say "rpm reads the package"
for package in *.rpm; do
  rpm --query --package --nosignature --queryformat '%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{LICENSE} %{BUILDHOST}\n' "$package"
  rpm --checksig --nosignature "$package"
done

say "the image runs a job with nothing beside it"
mkdir -p "$here/image"/{proc,data}
chown 65532:65532 "$here/image/data"
unshare --mount --propagation private sh -euc 'mount --bind /proc "$1/proc"; exec env -i HOME=/ "$2" --userspec=65532:65532 "$1" /ndls run --quiet --dataset synthetic:nodes=2000,edges=10000,features=16,classes=4,seed=1 --run /data/run --memory 512MiB --epochs 20 --runs 1' sh "$here/image" "$(command -v chroot)" >/dev/null
"$here/archive/bin/ndls" verify --run "$here/image/data/run" >/dev/null

say "make install"
staged=$work/staged
make -C "$source" install DESTDIR="$staged" PREFIX=/opt/ndls >/dev/null
[ "$("$staged/opt/ndls/bin/ndls" --version)" = "$("$here/archive/bin/ndls" --version)" ]
diff -r "$staged/opt/ndls/share" "$here/archive/share"
pages=0
for page in "$staged"/opt/ndls/share/man/man*/*.gz; do
  warnings=$(MANROFFOPT=-ww MAN_KEEP_STDERR=1 man --warnings --local-file "$page" 2>&1 >"$work/page" </dev/null)
  [ -z "$warnings" ] && [ -s "$work/page" ] || { echo "$page: $warnings" >&2; exit 1; }
  pages=$((pages + 1))
done
[ "$pages" -ge 20 ]
PATH=$staged/opt/ndls/bin:$PATH bash -euc '
  source "$1"
  COMP_WORDS=(ndls insp) COMP_CWORD=1 COMP_LINE="ndls insp" COMP_POINT=9 COMP_TYPE=9
  compopt() { :; } # works in completions alone
  if ! declare -F _init_completion >/dev/null; then
    _get_comp_words_by_ref() { cur=insp prev=ndls words=("${COMP_WORDS[@]}") cword=1; }
    __ltrim_colon_completions() { :; }
  fi
  __start_ndls
  [[ ${COMPREPLY[*]} = inspect* ]]' bash "$staged/opt/ndls/share/bash-completion/completions/ndls"

say "the bill of materials names what is in the program"
for arch in amd64 arm64; do
  python3 - "$work/$arch/archive/bin/ndls" ndls-*-linux-"$arch".cdx.json <<'PY'
import json, subprocess, sys

lines = subprocess.run(["go", "version", "-m", sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines()
inside = {line.split()[1] for line in lines if line.split()[0] in ("dep", "=>")}
listed = {c["name"]: c for c in json.load(open(sys.argv[2]))["components"]}
missing = inside - set(listed)
unlicensed = [name for name in inside & set(listed) if not listed[name].get("licenses") and not listed[name].get("evidence")]
if len(inside) < 50 or missing:
    sys.exit(f"{len(inside)} modules, and {sys.argv[2]} lacks {missing}")
print(f"{sys.argv[2]}: {len(inside)} modules, {len(inside) - len(unlicensed)} with a licence that was recognised; not {sorted(unlicensed)}")
PY
done
say "every part of the release is right"
