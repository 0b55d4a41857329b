#!/usr/bin/env bash
# Makes the container image of the programs in build/linux-ARCH, by the Dockerfile, as an OCI archive:
#
#   image.sh OUT TAG ARCH…
#
# It needs buildah, and no daemon. The licences are those in build/licences, the certificates those of
# this machine. With SOURCE_DATE_EPOCH set, the same input gives the same bytes.
set -euo pipefail
out=${1:?is the archive to make} tag=${2:?is the tag of the image}
shift 2
command -v buildah >/dev/null || { echo "buildah makes the image: install it (apt-get install buildah, dnf install buildah)" >&2; exit 1; }

work=$(mktemp -d)
# Files of layers belong to users of a name space, where the caller is not root.
trap 'if [ "$(id -u)" = 0 ]; then rm -rf "$work"; else buildah unshare rm -rf "$work"; fi' EXIT
builder() {
  local verb=$1
  shift
  buildah --root "$work/root" --runroot "$work/run" --storage-driver vfs "$verb" "$@"
}

for arch; do
  stage=$work/$arch
  install -D -m 755 "build/linux-$arch/ndls" "$stage/ndls"
  install -D -m 644 "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$stage/etc/ssl/certs/ca-certificates.crt"
  cp -r build/licences "$stage/licences"
  cp LICENSE "$stage/licences/"
  chmod -R u=rwX,go=rX "$stage"
  install -d "$work/empty"
  # This folder stands for the stage of the Dockerfile that compiles.
  builder build --quiet --isolation chroot --platform "linux/$arch" --timestamp "${SOURCE_DATE_EPOCH:-$(date +%s)}" \
    --build-context "build=$stage" --file deploy/kubernetes/Dockerfile --manifest ndls "$work/empty" >/dev/null
done
builder manifest push --quiet --all ndls "oci:$work/oci:$tag"
install -d "$(dirname "$out")"
tar --directory "$work/oci" --sort=name --mode=u=rwX,go=rX --mtime="@${SOURCE_DATE_EPOCH:-$(date +%s)}" --owner=0 --group=0 --numeric-owner --create . >"$out"
