//! The table of faults in FILE and on the machines.

/// A call of `tandem setup` with one fault, in its configuration file or on the machines. An empty field, or the shell
/// command `true`, adds no fault.
pub struct Case {
    pub what: &'static str,
    /// The name of the configuration file on the command line, if it is not the existing one.
    pub file_name: &'static str,
    /// The texts of the configuration file that are wrong in this case, each with the wrong replacement.
    pub file: &'static [(&'static str, &'static str)],
    /// The shell command that runs first on the node where `tandem setup` is typed.
    pub here: &'static str,
    /// The shell command that runs first on the other node.
    pub there: &'static str,
    /// The shell command that undoes `here` and `there`. It runs on both nodes.
    pub undo: &'static str,
    pub code: i32,
    /// Texts that the output of `tandem setup` must contain.
    pub words: &'static [&'static str],
}

const RIGHT: Case =
    Case { what: "", file_name: "", file: &[], here: "true", there: "true", undo: "", code: 1, words: &[] };

/// Returns a case in which the configuration file itself is wrong. The output must name the place.
const fn file(
    what: &'static str,
    file: &'static [(&'static str, &'static str)],
    words: &'static [&'static str],
) -> Case {
    Case { what, file, code: 2, words, ..RIGHT }
}

/// Returns a case in which the configuration file does not fit the machines.
const fn misfit(
    what: &'static str,
    file: &'static [(&'static str, &'static str)],
    words: &'static [&'static str],
) -> Case {
    Case { what, file, words, ..RIGHT }
}

/// Returns a case in which the other machine is not in the state that `tandem setup` requires.
const fn there(what: &'static str, there: &'static str, undo: &'static str, words: &'static [&'static str]) -> Case {
    Case { what, there, undo, words, ..RIGHT }
}

const fn here(what: &'static str, here: &'static str, undo: &'static str, words: &'static [&'static str]) -> Case {
    Case { what, here, undo, words, ..RIGHT }
}

/// Expands to a shell command that starts a program which listens on a port.
macro_rules! taken {
    ($kind:literal, $port:literal) => {
        concat!(
            "python3 -c 'import socket,time; s=socket.socket(socket.AF_INET,socket.",
            $kind,
            "); s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); s.bind((\"\",",
            $port,
            ")); \"",
            $kind,
            "\"==\"SOCK_STREAM\" and s.listen(); time.sleep(600)' > /dev/null 2>&1 < /dev/null & echo $! > /run/taken; sleep 0.5"
        )
    };
}

const RELEASE: &str = "kill -9 $(cat /run/taken 2>/dev/null) 2>/dev/null; rm -f /run/taken";
const FULL: &str = "mkdir -p /var/lib/etcd && mount -t tmpfs -o size=1m,mode=700 tmpfs /var/lib/etcd";
const FOREIGN: &str = "mkdir -p /etc/corosync && printf 'totem {\\n version: 2\\n cluster_name: warehouse\\n}\\nnodelist {\\n \
                       node {\\n ring0_addr: 10.99.0.2\\n name: node2\\n nodeid: 1\\n }\\n}\\n' > /etc/corosync/corosync.conf";

pub const CASES: &[Case] = &[
    Case {
        what: "a FILE that is not there",
        file_name: "/etc/tandem/no.toml",
        code: 2,
        words: &["/etc/tandem/no.toml"],
        ..RIGHT
    },
    file("a FILE that is no TOML", &[("cluster = \"tandem\"", "cluster = tandem")], &["cluster.toml:1:"]),
    file(
        "a setting that there is not",
        &[("cluster = ", "colour = \"red\"\ncluster = ")],
        &["cluster.toml:1:1", "colour"],
    ),
    file("a setting misspelt", &[("preferred = ", "prefered = ")], &["cluster.toml:2:1", "preferred"]),
    file("no name for the cluster", &[("cluster = \"tandem\"", "")], &["cluster"]),
    file(
        "no node of the preferred name",
        &[("preferred = \"node1\"", "preferred = \"node3\"")],
        &["cluster.toml:2:", "node3"],
    ),
    file("a clone that there is not", &[("\"promotable\"", "\"double\"")], &["cluster.toml:3:", "double"]),
    file("both nodes called the same", &[("name = \"node2\"", "name = \"node1\"")], &["node1"]),
    file("both nodes at one address", &[("\"10.99.0.2\"", "\"10.99.0.1\"")], &["10.99.0.1"]),
    file("addresses of two families", &[("\"10.99.0.2\"", "\"fd00:7a4e::2\"")], &["fd00:7a4e::2"]),
    file("what is no address", &[("\"10.99.0.2\"", "\"node2.example\"")], &["node2.example"]),
    file(
        "a password in FILE",
        &[("username = \"admin\"", "username = \"admin\"\npassword = \"geheim\"")],
        &["password"],
    ),
    file("no image", &[("image = ", "# image = ")], &["image"]),
    misfit("another machine's name", &[("name = \"node2\"", "name = \"node3\"")], &["node2", "node3"]),
    misfit(
        "another machine's name for this one",
        &[("preferred = \"node1\"", "preferred = \"node2\""), ("name = \"node1\"", "name = \"node7\"")],
        &["node1", "node7"],
    ),
    misfit("another machine's address", &[("\"10.99.0.2\"", "\"10.99.0.9\"")], &["10.99.0.9"]),
    misfit(
        "the addresses swapped",
        &[("\"10.99.0.2\"", "\"X\""), ("\"10.99.0.1\"", "\"10.99.0.2\""), ("\"X\"", "\"10.99.0.1\"")],
        // A fault of the machine on which it is typed ends the command before the other machine is queried.
        &["calls itself node1"],
    ),
    misfit(
        "the BMCs swapped",
        &[
            ("\"10.98.0.102\"", "\"X\""),
            ("\"10.98.0.101\"", "\"10.98.0.102\""),
            ("\"X\"", "\"10.98.0.101\""),
            ("Embedded.2", "Embedded.X"),
            ("Embedded.1", "Embedded.2"),
            ("Embedded.X", "Embedded.1"),
        ],
        &["is that of node1", "is that of node2"],
    ),
    misfit("a BMC where none is", &[("\"10.98.0.102\"", "\"10.98.0.109\"")], &["10.98.0.109"]),
    misfit("a system that the BMC does not have", &[("Embedded.2", "Embedded.9")], &["Embedded.9"]),
    misfit("a user that the BMC does not know", &[("username = \"admin\"", "username = \"nobody\"")], &["password"]),
    misfit(
        "an image that nobody has",
        &[("localhost/tandem/etcd", "localhost/tandem/nothing")],
        &["localhost/tandem/nothing"],
    ),
    here("a wrong password", "echo wrong > /etc/tandem/bmc-node2.password", "true", &["password"]),
    here("no password file", "rm /etc/tandem/bmc-node2.password", "true", &["bmc-node2.password"]),
    here("an empty password file", ": > /etc/tandem/bmc-node2.password", "true", &["bmc-node2.password"]),
    there("etcd's port taken", taken!("SOCK_STREAM", "2379"), RELEASE, &["2379"]),
    there("etcd's other port taken", taken!("SOCK_STREAM", "2380"), RELEASE, &["2380"]),
    there("pcsd's port taken", taken!("SOCK_STREAM", "2224"), RELEASE, &["2224"]),
    there("Corosync's port taken", taken!("SOCK_DGRAM", "5405"), RELEASE, &["5405"]),
    here("etcd's port taken on this node", taken!("SOCK_STREAM", "2379"), RELEASE, &["2379"]),
    there("no room for etcd", FULL, "umount /var/lib/etcd 2>/dev/null", &["/var/lib/etcd"]),
    there("a cluster of somebody's there", FOREIGN, "rm -f /etc/corosync/corosync.conf", &["warehouse"]),
    here("a cluster of somebody's here", FOREIGN, "rm -f /etc/corosync/corosync.conf", &["warehouse"]),
    there(
        "no pcs on the other node",
        "mv /usr/sbin/pcs /usr/sbin/pcs.away",
        "test ! -e /usr/sbin/pcs.away || mv /usr/sbin/pcs.away /usr/sbin/pcs",
        &["pcs"],
    ),
    file(
        "one BMC for both",
        &[("\"10.98.0.102\"", "\"10.98.0.101\""), ("Embedded.2", "Embedded.1")],
        &["one and the same BMC"],
    ),
];
