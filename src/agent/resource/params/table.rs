//! Every parameter, in the order in which the meta-data lists them. The first part has the names, defaults and meanings
//! of the shell agent `ocf:heartbeat:podman-etcd`; the second is for clusters without a pod manifest.

use crate::adapters::options::OptionKind::{Directory, Integer, OneOf, Path, Paths, Text, Truth, Words};
use crate::adapters::options::OptionRow;

pub(super) const NODE_IP_MAP: OptionRow = OptionRow::new("node_ip_map", Text, "Nodes and their addresses")
    .value("node1:192.0.2.1;node2:192.0.2.2")
    .required()
    .reloadable()
    .long("The cluster's nodes and the IP addresses under which their etcd members reach each other, as 'node1:192.0.2.1;node2:192.0.2.2'. Names are the cluster nodes' names. An IPv6 address may be written with or without brackets. One entry makes a cluster of one. Where the peer's entry changes, etcd runs on; where this node's own address does, it is restarted.");

pub(super) const POD_MANIFEST: OptionRow = OptionRow::new("pod_manifest", Path, "Pod manifest of etcd")
    .default("/etc/kubernetes/static-pod-resources/etcd-certs/configmaps/external-etcd-pod/pod.yaml")
    .long("The file with etcd's pod manifest, in JSON, as OpenShift's cluster-etcd-operator writes it: from it come the image, the certificates and etcd's settings. It is not read where 'image' and the certificates are given.");

pub(super) const IMAGE: OptionRow = OptionRow::new("image", Text, "Container image")
    .default("default")
    .reloadable()
    .long("The image that etcd runs from, as podman names it, e.g. 'registry.example.com/etcd:v3.5.21'; 'default' takes it from the pod manifest. Where it changes, etcd runs on, and each node's next start is from the new image: 'tandem upgrade' restarts one node after the other. Where a node cannot have the new image, etcd starts from the one that it ran from.");

pub(super) const NAME: OptionRow =
    OptionRow::new("name", Text, "Container name").default("etcd").long("The name of the container.");

pub(super) const NIC: OptionRow = OptionRow::new("nic", Text, "Network interface")
    .default("br-ex")
    .reloadable()
    .long("Accepted for compatibility and not used: the addresses come from 'node_ip_map'.");

pub(super) const AUTHFILE: OptionRow = OptionRow::new("authfile", Path, "Credentials for the registry")
    .default("/var/lib/kubelet/config.json")
    .reloadable()
    .long("The file with the registry's credentials that podman pulls the image with, where it exists.");

pub(super) const ALLOW_PULL: OptionRow = OptionRow::new("allow_pull", Truth, "Whether to pull the image")
    .default("1")
    .reloadable()
    .long("Whether the image is pulled where this node does not have it.");

pub(super) const RUN_OPTS: OptionRow = OptionRow::new("run_opts", Words, "More options of podman run")
    .long("Options added to 'podman run', separated by blanks. The container's name is set with 'name'.");

pub(super) const RUN_CMD: OptionRow = OptionRow::new("run_cmd", Words, "Program in the container")
    .long("The program that runs in the container, where it is not the image's 'etcd'. It gets '--config-file' with etcd's configuration.");

pub(super) const RUN_CMD_OPTS: OptionRow = OptionRow::new("run_cmd_opts", Words, "More arguments of the program")
    .long("Arguments that follow '--config-file', separated by blanks.");

pub(super) const MOUNT_POINTS: OptionRow = OptionRow::new("mount_points", Paths, "Directories to make")
    .long("Directories, separated by commas, that are made before the container starts where they do not exist.");

pub(super) const MONITOR_CMD: OptionRow = OptionRow::new("monitor_cmd", Words, "Extra health check")
    .reloadable()
    .long("A command, with its full path, that every monitor runs in the container besides asking etcd itself; an exit code other than 0 means that the member has failed. None by default: etcd's own answer says more.");

pub(super) const FORCE_KILL: OptionRow = OptionRow::new("force_kill", Truth, "Whether to stop without grace")
    .default("0")
    .reloadable()
    .long("Whether etcd is killed at a stop instead of being asked to end.");

pub(super) const REUSE: OptionRow = OptionRow::new("reuse", Truth, "Whether to keep the container")
    .default("0")
    .reloadable()
    .long("Accepted for compatibility and not used: a container is always kept and started again, until its image, its manifest or its options change; then it is kept as '<name>-previous'.");

pub(super) const DROP_IN_DEPENDENCY: OptionRow = OptionRow::new("drop_in_dependency", Truth, "Whether systemd stops Pacemaker first")
    .long("Whether the container's systemd scopes get drop-ins that let a shutdown of the machine stop Pacemaker, and with it etcd, before systemd ends the container. Default: true where systemd runs, or /etc/sysconfig/podman_drop_in or /etc/default/podman_drop_in exists.");

pub(super) const OOM: OptionRow = OptionRow::new("oom", Integer(-1000, 1000), "OOM score adjustment")
    .default("-997")
    .reloadable()
    .long("How willing the kernel is to end etcd when memory runs out, from -1000 (never) to 1000. 0 leaves it alone; default: -997.");

pub(super) const CONFIG_LOCATION: OptionRow = OptionRow::new("config_location", Directory, "Directory for etcd's configuration")
    .default("/var/lib/etcd")
    .long("The directory for etcd's configuration file and for the copy of the pod manifest that the container was made from.");

pub(super) const BACKUP_LOCATION: OptionRow =
    OptionRow::new("backup_location", Directory, "Directory for database snapshots")
        .default("/var/lib/etcd")
        .reloadable()
        .long(
            "The directory for copies 'snapshot-YYYYMMDD-HHMMSS.db' of the database of a data dir that is backed up.",
        );

pub(super) const MAX_BACKUP_SNAPSHOTS: OptionRow = OptionRow::new("max_backup_snapshots", Integer(1, 1000), "Backups to keep")
    .default("3")
    .reloadable()
    .long("How many data dirs that were backed up are kept once this node votes again, and how many database snapshots. Until then no data dir is deleted, unless the disk has no room for the data that it is to get; then the oldest go first, and never one that may still be needed. At least 1: with 0 the last copy of a history would be deleted in the moment in which this node votes again. A resource that has 0 from before works as with 1, with a warning in the journal.");

/// Path of OpenShift's kubeconfig on each node of its control plane.
pub const DEFAULT_KUBECONFIG: &str =
    "/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig";

pub(super) const KUBECONFIG: OptionRow = OptionRow::new("kubeconfig", Path, "Access to the Kubernetes API")
    .default(DEFAULT_KUBECONFIG)
    .reloadable()
    .long("The kubeconfig with which OpenShift is asked whether a node's Machine is being deleted, so that its member is not added again. Where the file does not exist, nobody is asked.");

pub(super) const DATA_DIR: OptionRow = OptionRow::new("data_dir", Directory, "etcd's data dir")
    .long("The directory that holds etcd's data (in 'member'), the data that was backed up, and the agent's durable note. By default that of the pod manifest, else /var/lib/etcd.");

pub(super) const TRUSTED_CA_FILE: OptionRow = OptionRow::new("trusted_ca_file", Path, "CA certificates")
    .long("The PEM file with the certificates of the authority that signed the members' and the clients' certificates. With 'cert_file', 'key_file' and 'image' it replaces the pod manifest.");

pub(super) const CERT_FILE: OptionRow = OptionRow::new("cert_file", Path, "Certificate").long(
    "The PEM file with this node's certificate, for clients and for other members, with this node's address in it.",
);

pub(super) const KEY_FILE: OptionRow =
    OptionRow::new("key_file", Path, "Private key").long("The PEM file with the private key of 'cert_file'.");

pub(super) const PEER_CERT_FILE: OptionRow = OptionRow::new("peer_cert_file", Path, "Certificate between members")
    .long("The PEM file with the certificate that members show each other; 'cert_file' where it is not given.");

pub(super) const PEER_KEY_FILE: OptionRow = OptionRow::new("peer_key_file", Path, "Private key between members")
    .long("The PEM file with the private key of 'peer_cert_file'.");

pub(super) const CLIENT_CERT_FILE: OptionRow = OptionRow::new("client_cert_file", Path, "The agent's certificate")
    .long("The PEM file with the client certificate that the agent itself asks etcd with; 'cert_file' where it is not given.");

pub(super) const CLIENT_KEY_FILE: OptionRow = OptionRow::new("client_key_file", Path, "The agent's private key")
    .long("The PEM file with the private key of 'client_cert_file'.");

pub(super) const CLIENT_PORT: OptionRow = OptionRow::new("client_port", Integer(1, 65535), "Port for clients")
    .default("2379")
    .long("The TCP port on which etcd serves clients.");

pub(super) const PEER_PORT: OptionRow = OptionRow::new("peer_port", Integer(1, 65535), "Port for members")
    .default("2380")
    .long("The TCP port on which members reach each other.");

pub(super) const ETCD_SETTINGS: OptionRow = OptionRow::new("etcd_settings", Text, "More settings of etcd")
    .long("Settings of etcd's configuration file, as 'heartbeat-interval=100;election-timeout=1000', named as etcd's own options are. They go before those of the pod manifest.");

pub(super) const PROMOTE_MAX_LAG: OptionRow = OptionRow::new("promote_max_lag", Integer(0, 1_000_000), "Largest lag of a learner to promote, in log entries")
    .default("100")
    .reloadable()
    .long("A learner becomes a voter once it lacks at most this many entries of the leader's log in two polls in a row. From then on every write waits for it.");

pub(super) const VOTE_PROXY: &str = "standin";
pub(super) const RESTART: &str = "restart";
pub(super) const VOTE_PROXY_UNTESTED: &str = "standin-untested";

pub(super) const RECOVERY: OptionRow = OptionRow::new("recovery", OneOf(&[VOTE_PROXY, RESTART, VOTE_PROXY_UNTESTED]), "How the survivor of a pair goes on")
    .default(VOTE_PROXY)
    .reloadable()
    .long("What happens once the peer is confirmed off. 'standin': etcd runs on, and the vote that it lacks is cast for the dead member over etcd's own peer protocol; where anything is not as it has to be, or the release of etcd is not one that this was tested with (3.4 from 3.4.21 on, 3.5 from 3.5.5 on, 3.6, 3.7), etcd is restarted as with 'restart'. 'restart': etcd is stopped and started again as a new cluster from its data, as etcd documents it. 'standin-untested': as 'standin', with every release.");

pub(super) const CONFIGURED_PRIMARY: OptionRow = OptionRow::new("configured_primary", Text, "Node that is to lead")
    .value("node1")
    .reloadable()
    .long("The node of 'node_ip_map' whose etcd is to lead, where both vote: the better one of two machines. Leadership goes back to it once it has been well for 'failback_delay'. None by default: then either leads. What an operator chooses between two histories ('etcd_primary') is another thing.");

pub(super) const FAILBACK_TO_PRIMARY: OptionRow = OptionRow::new("failback_to_primary", Truth, "Whether leadership goes back to the primary")
    .reloadable()
    .long("Whether the other node hands leadership back to 'configured_primary'. Default: yes, where a primary is configured.");

pub(super) const FAILBACK_DELAY: OptionRow = OptionRow::new("failback_delay", Integer(10, 3600), "Time that the primary has to be well, in seconds")
    .default("60")
    .reloadable()
    .long("How long the primary has to vote, follow closely and have no alarm, in each monitor, until leadership goes back to it.");

pub(super) const PARTITION_PATIENCE: OptionRow = OptionRow::new("partition_patience", Integer(0, 600), "Time without a leader before the other node yields to the primary, in seconds")
    .default("30")
    .reloadable()
    .long("Where only etcd's network parts, both machines are up and neither etcd has a leader. After so many seconds the node that is not 'configured_primary' gives up its claim to run standalone and is stopped, and the primary runs standalone. From 10 to 600; 0: never, and both wait. Without a primary both wait, too.");

pub(super) const REFUSE: &str = "refuse";
pub(super) const KEEP_PRIMARYS: &str = "primary";

pub(super) const TWO_HISTORIES: OptionRow = OptionRow::new("two_histories", OneOf(&[REFUSE, KEEP_PRIMARYS]), "What happens where both nodes ran standalone")
    .default(REFUSE)
    .reloadable()
    .long("What happens where both nodes hold a history of their own and an operator chose neither ('etcd_primary'). 'refuse': both wait for that choice. 'primary': the history of 'configured_primary' continues, and the other one is given up without a question; it is kept beside the data, and 'tandem data-dir diff' lists its keys. A history that serves is never given up for it.");

pub const NEVER: &str = "never";
pub const SOLE_VOTER: &str = "sole_voter";

pub(super) const LONE_BOOT: OptionRow = OptionRow::new("lone_boot", OneOf(&[NEVER, SOLE_VOTER]), "Whether a node that boots without its peer serves")
    .default(NEVER)
    .reloadable()
    .long("What 'tandem-lone-boot.service' does on a node that boots and does not see its peer. 'never': Corosync waits for the peer, or for an operator. 'sole_voter': where this node's data proves that the peer cannot have served, and the peer's BMC has said for 'lone_boot_wait' that the peer is off, the peer is held off and Corosync waits no longer. Pacemaker then starts etcd. No peer is switched off that is on, and none is switched on.");

pub(super) const LONE_BOOT_WAIT: OptionRow = OptionRow::new("lone_boot_wait", Integer(30, 3600), "Time that the peer has to be off before a lone boot, in seconds")
    .default("120")
    .reloadable()
    .long("For how long the peer's BMC has to say Off, in each look, before a node with lone_boot=sole_voter boots alone. It should be longer than a BMC takes to switch its machine on again after a loss of power.");

pub(super) const REACH_ATTRIBUTE: OptionRow = OptionRow::new("reach_attribute", Text, "Node attribute that says whether users reach a node")
    .value("pingd")
    .reloadable()
    .long("The name of a node attribute that 'ocf:pacemaker:ping' or the like keeps on both nodes. Where it is 0, users do not reach that node: leadership does not go there, and a leader with 0 for 10 s hands it to a peer with another value. None by default: then no node counts as cut off.");

pub(super) const MACHINE_HOOKS: OptionRow = OptionRow::new("machine_hooks", Truth, "Whether the collector keeps the hooks of the voters' Machines")
    .default("0")
    .reloadable()
    .long("Whether 'tandem collect' on the leader's node puts a hook on the Machine of each voter, and takes it off once the Machine is being deleted and a majority confirms that its node has no member. 'kubeconfig' has to give access to the API that has the Machines. Next to OpenShift's etcd operator nothing is written.");

/// Table of the resource's parameters: name, kind, default and meaning of each.
pub const PARAMETERS: &[OptionRow] = &[
    NODE_IP_MAP,
    POD_MANIFEST,
    IMAGE,
    NAME,
    NIC,
    AUTHFILE,
    ALLOW_PULL,
    RUN_OPTS,
    RUN_CMD,
    RUN_CMD_OPTS,
    MOUNT_POINTS,
    MONITOR_CMD,
    FORCE_KILL,
    REUSE,
    DROP_IN_DEPENDENCY,
    OOM,
    CONFIG_LOCATION,
    BACKUP_LOCATION,
    MAX_BACKUP_SNAPSHOTS,
    KUBECONFIG,
    DATA_DIR,
    TRUSTED_CA_FILE,
    CERT_FILE,
    KEY_FILE,
    PEER_CERT_FILE,
    PEER_KEY_FILE,
    CLIENT_CERT_FILE,
    CLIENT_KEY_FILE,
    CLIENT_PORT,
    PEER_PORT,
    ETCD_SETTINGS,
    PROMOTE_MAX_LAG,
    RECOVERY,
    CONFIGURED_PRIMARY,
    FAILBACK_TO_PRIMARY,
    FAILBACK_DELAY,
    PARTITION_PATIENCE,
    TWO_HISTORIES,
    REACH_ATTRIBUTE,
    MACHINE_HOOKS,
    LONE_BOOT,
    LONE_BOOT_WAIT,
];
