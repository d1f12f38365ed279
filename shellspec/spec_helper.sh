# shellcheck shell=bash
# What every specification here relies on: the binary under each of its names, first on the PATH. Which binary:
# TANDEM_BIN, else the one that 'cargo build' made.

tandem_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tandem_bin=${TANDEM_BIN:-$tandem_root/target/debug/tandem}
if [ ! -x "$tandem_bin" ]; then
    echo "$tandem_bin is not there: type 'cargo build', or set TANDEM_BIN" >&2
    exit 1
fi

names=$tandem_root/target/shellspec-names
mkdir -p "$names"
for name in tandem podman-etcd fence_redfish_rs fence_redfish; do
    ln -sfn "$tandem_bin" "$names/$name"
done
PATH=$names:$PATH
unset "${!OCF_@}"
