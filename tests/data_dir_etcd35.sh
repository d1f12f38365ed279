#!/bin/sh
# Unpacks etcd 3.5 from Debian 13 into DIR, without touching the system: an apt configuration of its own, and etcd with
# the C library it was built for. Debian 12's own etcd-server package is the 3.4 of the same tests.
#
# usage: data_dir_etcd35.sh DIR      makes DIR/etcd
set -eu

dir=${1:?usage: $0 DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
"$dir/etcd" --version >/dev/null 2>&1 && exit 0

apt=$dir/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$dir/root"
arch=$(dpkg --print-architecture)
mirror=$(grep -rhoE 'https?://[^ ]*/debian/?([ ]|$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -n 1 | tr -d ' ')
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keyring] ${mirror:-http://deb.debian.org/debian} trixie main" >"$apt/sources.list"
: >"$apt/status"

# Proxies and the like stay as the machine has them; state, lists and caches are ours.
private() {
    apt-get -qq -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$apt/lists" \
        -o "Dir::State::Status=$apt/status" -o "Dir::Cache=$apt" -o APT::Sandbox::User=root "$@"
}
private update
(cd "$apt/archives" && private download etcd-server libc6)
for package in "$apt"/archives/*.deb; do
    dpkg -x "$package" "$dir/root"
done
loader=$(find "$dir/root" -name 'ld-linux-*.so.*' | head -n 1)
library=$(dirname "$(find "$dir/root" -name libc.so.6 | head -n 1)")
cat >"$dir/etcd" <<END
#!/bin/sh
exec "$loader" --library-path "$library" "$dir/root/usr/bin/etcd" "\$@"
END
chmod +x "$dir/etcd"
rm -rf "$apt"
"$dir/etcd" --version | head -n 1
