//! Every parameter, in the order in which the meta-data lists them. The first part has the names, defaults and meanings
//! of the shell agent `ocf:heartbeat:podman-etcd`; the second is for clusters without a pod manifest.

use crate::adapters::options::OptionKind::{Directory, Integer, OneOf, Path, Paths, Text, Truth, Words};
use crate::adapters::options::OptionRow;

pub(super) const NODE_IP_MAP: OptionRow = OptionRow::new("node_ip_map", Text, "Nodes and their addresses")
    .value("node1:192.0.2.1;node2:192.0.2.2")
    .required()
    .reloadable()
    .long("The nodes of the cluster, and the IP addresses at which their etcd members reach each other, as 'node1:192.0.2.1;node2:192.0.2.2'. The names are those in Pacemaker. An IPv6 address may be written with or without brackets. With one entry etcd has one member. If the peer's entry changes, etcd continues to run. If this node's own address changes, its etcd is restarted.");

pub(super) const POD_MANIFEST: OptionRow = OptionRow::new("pod_manifest", Path, "Pod manifest of etcd")
    .default("/etc/kubernetes/static-pod-resources/etcd-certs/configmaps/external-etcd-pod/pod.yaml")
    .long("The file with etcd's pod manifest, in JSON, as OpenShift's cluster-etcd-operator writes it. The agent takes the image, the certificates and etcd's settings from it. It does not read the file if 'image' and the certificates are given.");

pub(super) const IMAGE: OptionRow = OptionRow::new("image", Text, "Container image")
    .default("default")
    .reloadable()
    .long("The image that etcd runs from, as podman names it, e.g. 'registry.example.com/etcd:v3.5.21'. 'default' takes it from the pod manifest. A change restarts nothing: each node uses the new image from its next start on, and 'tandem upgrade' restarts etcd on one node after the other. If a node cannot get the new image, its etcd starts from the image that it ran from before.");

pub(super) const NAME: OptionRow =
    OptionRow::new("name", Text, "Container name").default("etcd").long("The name of the container in podman.");

pub(super) const NIC: OptionRow = OptionRow::new("nic", Text, "Network interface")
    .default("br-ex")
    .reloadable()
    .long("Accepted for compatibility, and not used, because the addresses come from 'node_ip_map'.");

pub(super) const AUTHFILE: OptionRow = OptionRow::new("authfile", Path, "Credentials for the registry")
    .default("/var/lib/kubelet/config.json")
    .reloadable()
    .long("The file with the registry's credentials, with which podman pulls the image. If the file does not exist, podman pulls without it.");

pub(super) const ALLOW_PULL: OptionRow = OptionRow::new("allow_pull", Truth, "Whether to pull the image")
    .default("1")
    .reloadable()
    .long("Whether the agent pulls the image if this node does not have it.");

pub(super) const RUN_OPTS: OptionRow = OptionRow::new("run_opts", Words, "More options of podman run")
    .long("Further options of 'podman run', separated by blanks. None by default. Set the container's name with 'name' instead.");

pub(super) const RUN_CMD: OptionRow = OptionRow::new("run_cmd", Words, "Program in the container")
    .long("The program that runs in the container. By default the image's 'etcd'. It gets '--config-file' with the path of etcd's configuration.");

pub(super) const RUN_CMD_OPTS: OptionRow = OptionRow::new("run_cmd_opts", Words, "More arguments of the program")
    .long("Further arguments of the program, after '--config-file', separated by blanks. None by default.");

pub(super) const MOUNT_POINTS: OptionRow = OptionRow::new("mount_points", Paths, "Directories to make")
    .long("Directories, separated by commas, that the agent creates before the container starts if they do not exist. None by default.");

pub(super) const MONITOR_CMD: OptionRow = OptionRow::new("monitor_cmd", Words, "Extra health check")
    .reloadable()
    .long("A command, with its full path, that each monitor runs in the container. An exit code other than 0 means that the member has failed. None by default, because each monitor asks etcd itself, whose answer shows more.");

pub(super) const FORCE_KILL: OptionRow = OptionRow::new("force_kill", Truth, "Whether to stop without grace")
    .default("0")
    .reloadable()
    .long("Whether a stop kills etcd (SIGKILL) instead of asking it to end (SIGTERM).");

pub(super) const REUSE: OptionRow = OptionRow::new("reuse", Truth, "Whether to keep the container")
    .default("0")
    .reloadable()
    .long("Accepted for compatibility, and not used. The agent always keeps the container and starts it again, until its image, its manifest or its options change. Then it keeps the old container as '<name>-previous'.");

pub(super) const DROP_IN_DEPENDENCY: OptionRow = OptionRow::new("drop_in_dependency", Truth, "Whether systemd stops Pacemaker first")
    .long("Whether the agent writes drop-ins for the container's systemd scopes. With them a shutdown of the machine stops Pacemaker, and with it etcd, before systemd ends the container. Default: true if systemd runs, or if /etc/sysconfig/podman_drop_in or /etc/default/podman_drop_in exists.");

pub(super) const OOM: OptionRow = OptionRow::new("oom", Integer(-1000, 1000), "OOM score adjustment")
    .default("-997")
    .reloadable()
    .long("How readily the kernel kills etcd when memory runs out, from -1000 (never) to 1000 (first). With 0 the agent sets no score. Default: -997.");

pub(super) const CONFIG_LOCATION: OptionRow = OptionRow::new("config_location", Directory, "Directory for etcd's configuration")
    .default("/var/lib/etcd")
    .long("The directory for etcd's configuration file, and for a copy of the pod manifest from which the container was made.");

pub(super) const BACKUP_LOCATION: OptionRow =
    OptionRow::new("backup_location", Directory, "Directory for database snapshots")
        .default("/var/lib/etcd")
        .reloadable()
        .long(
            "The directory for database snapshots. When the agent backs a data dir up, it keeps a copy of its database here as 'snapshot-YYYYMMDD-HHMMSS.db'.",
        );

pub(super) const MAX_BACKUP_SNAPSHOTS: OptionRow = OptionRow::new("max_backup_snapshots", Integer(1, 1000), "Backups to keep")
    .default("3")
    .reloadable()
    .long("How many backed-up data dirs the agent keeps once this node votes again, and how many database snapshots. Before that it deletes a backed-up data dir only if the disk has no room for the data that the node is to get: the oldest first, and never one that may still be needed. The least value is 1, because with 0 the last copy of some data would be deleted as soon as this node votes again. A resource that still has 0 works as with 1, and the agent logs a warning.");

/// Path of OpenShift's kubeconfig on each node of its control plane.
pub const DEFAULT_KUBECONFIG: &str =
    "/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig";

pub(super) const KUBECONFIG: OptionRow = OptionRow::new("kubeconfig", Path, "Access to the Kubernetes API")
    .default(DEFAULT_KUBECONFIG)
    .reloadable()
    .long("The kubeconfig with which the agent asks OpenShift whether a node's Machine is being deleted. The member of such a node is not added again. If the file does not exist, the agent does not ask.");

pub(super) const DATA_DIR: OptionRow = OptionRow::new("data_dir", Directory, "etcd's data dir")
    .long("The directory with etcd's data (in 'member'), backed-up data, and the agent's own state (in 'tandem'). The default is the directory in the pod manifest, else /var/lib/etcd.");

pub(super) const TRUSTED_CA_FILE: OptionRow = OptionRow::new("trusted_ca_file", Path, "CA certificates")
    .long("The PEM file with the CA certificates that signed the certificates of members and clients. With 'cert_file', 'key_file' and 'image' it replaces the pod manifest.");

pub(super) const CERT_FILE: OptionRow = OptionRow::new("cert_file", Path, "Certificate").long(
    "The PEM file with the certificate that this node's etcd shows to clients and other members. It must have this node's address. Required without a pod manifest.",
);

pub(super) const KEY_FILE: OptionRow = OptionRow::new("key_file", Path, "Private key")
    .long("The PEM file with the private key of 'cert_file'. Required without a pod manifest.");

pub(super) const PEER_CERT_FILE: OptionRow = OptionRow::new("peer_cert_file", Path, "Certificate between members")
    .long(
        "The PEM file with the certificate that this node's etcd shows to other members. The default is 'cert_file'.",
    );

pub(super) const PEER_KEY_FILE: OptionRow = OptionRow::new("peer_key_file", Path, "Private key between members")
    .long("The PEM file with the private key of 'peer_cert_file'. The default is 'key_file'.");

pub(super) const CLIENT_CERT_FILE: OptionRow = OptionRow::new("client_cert_file", Path, "The agent's certificate")
    .long("The PEM file with the client certificate that the agent shows to etcd. The default is 'cert_file'.");

pub(super) const CLIENT_KEY_FILE: OptionRow = OptionRow::new("client_key_file", Path, "The agent's private key")
    .long("The PEM file with the private key of 'client_cert_file'. The default is 'key_file'.");

pub(super) const CLIENT_PORT: OptionRow = OptionRow::new("client_port", Integer(1, 65535), "Port for clients")
    .default("2379")
    .long("The TCP port on which etcd serves clients.");

pub(super) const PEER_PORT: OptionRow = OptionRow::new("peer_port", Integer(1, 65535), "Port for members")
    .default("2380")
    .long("The TCP port on which members reach each other.");

pub(super) const ETCD_SETTINGS: OptionRow = OptionRow::new("etcd_settings", Text, "More settings of etcd")
    .long("Settings for etcd's configuration file, as 'heartbeat-interval=100;election-timeout=1000', with the names of etcd's own options. They override those of the pod manifest. None by default.");

pub(super) const PROMOTE_MAX_LAG: OptionRow = OptionRow::new("promote_max_lag", Integer(0, 1_000_000), "Largest lag of a learner to promote, in log entries")
    .default("100")
    .reloadable()
    .long("The agent promotes a learner to a voter once the learner lacks at most this many entries of the leader's log in two polls in a row. From then on each write waits for that voter.");

pub(super) const VOTE_PROXY: &str = "standin";
pub(super) const RESTART: &str = "restart";
pub(super) const VOTE_PROXY_UNTESTED: &str = "standin-untested";

pub(super) const RECOVERY: OptionRow = OptionRow::new("recovery", OneOf(&[VOTE_PROXY, RESTART, VOTE_PROXY_UNTESTED]), "How the survivor of a pair continues")
    .default(VOTE_PROXY)
    .reloadable()
    .long("What the agent does once the peer is confirmed off. 'standin': etcd continues to run, and the agent casts the dead member's vote over etcd's own peer protocol. If a condition for that does not hold, or the release of etcd is not supported (3.4 from 3.4.21 on, 3.5 from 3.5.5 on, 3.6 and 3.7 are), it restarts etcd as with 'restart'. 'restart': the agent stops etcd, and starts it again as a new cluster from its data, as etcd documents it. 'standin-untested': as 'standin', with every release.");

pub(super) const CONFIGURED_PRIMARY: OptionRow = OptionRow::new("configured_primary", Text, "Node that is to lead")
    .value("node1")
    .reloadable()
    .long("The node of 'node_ip_map' with the etcd that is to lead while both members vote, such as the better one of two machines. Leadership goes back to it once it has been well for 'failback_delay'. None by default: then either node leads. It is not related to the cluster property 'etcd_primary', by which an operator chooses between the data of two nodes.");

pub(super) const FAILBACK_TO_PRIMARY: OptionRow = OptionRow::new(
    "failback_to_primary",
    Truth,
    "Whether leadership goes back to the primary",
)
.reloadable()
.long(
    "Whether the other node hands leadership back to 'configured_primary'. Default: yes, if a primary is configured.",
);

pub(super) const FAILBACK_DELAY: OptionRow = OptionRow::new("failback_delay", Integer(10, 3600), "Time that the primary has to be well, in seconds")
    .default("60")
    .reloadable()
    .long("For how many seconds each monitor must find that the primary votes, follows closely and has no alarm, before leadership goes back to it.");

pub(super) const PARTITION_PATIENCE: OptionRow = OptionRow::new("partition_patience", Integer(0, 600), "Time without a leader before the other node yields to the primary, in seconds")
    .default("30")
    .reloadable()
    .long("If the network fails between the two etcds only, both machines are up, and neither etcd has a leader. After this many seconds the node that is not 'configured_primary' gives up its right to run standalone, and its etcd is stopped. The primary then runs standalone. From 10 to 600. With 0, or without a primary, both nodes wait until the network works again.");

pub(super) const REFUSE: &str = "refuse";
pub(super) const KEEP_PRIMARYS: &str = "primary";

pub(super) const TWO_HISTORIES: OptionRow = OptionRow::new("two_histories", OneOf(&[REFUSE, KEEP_PRIMARYS]), "What happens after both nodes ran standalone")
    .default(REFUSE)
    .reloadable()
    .long("What happens if both nodes ran standalone, so that each has writes that the other one lacks, and no operator has chosen between them ('etcd_primary'). 'refuse': neither node starts before an operator chooses. 'primary': the data of 'configured_primary' continues, and that of the other node is given up without a question. It is kept next to the present data as 'member-history-*', and 'tandem data-dir diff' lists its keys. Data that etcd serves at that time is never given up for this parameter.");

pub const NEVER: &str = "never";
pub const SOLE_VOTER: &str = "sole_voter";

pub(super) const LONE_BOOT: OptionRow = OptionRow::new("lone_boot", OneOf(&[NEVER, SOLE_VOTER]), "Whether a node that boots without its peer serves")
    .default(NEVER)
    .reloadable()
    .long("What 'tandem-lone-boot.service' does on a node that boots and does not see its peer. 'never': Corosync waits for the peer, or for an operator. 'sole_voter': the service ends that wait if this node's data proves that the peer cannot have served, and the peer's BMC has reported Off for 'lone_boot_wait'. It also has Pacemaker's fencer hold the peer off. Pacemaker then starts etcd. The service switches no peer off that is on, and switches none on.");

pub(super) const LONE_BOOT_WAIT: OptionRow = OptionRow::new("lone_boot_wait", Integer(30, 3600), "Time that the peer has to be off before a lone boot, in seconds")
    .default("120")
    .reloadable()
    .long("For how many seconds each answer of the peer's BMC must be Off before a node with lone_boot=sole_voter serves alone. It should be longer than a BMC takes to switch its machine on again after a loss of power.");

pub(super) const REACH_ATTRIBUTE: OptionRow = OptionRow::new("reach_attribute", Text, "Node attribute that shows whether users reach a node")
    .value("pingd")
    .reloadable()
    .long("The name of a node attribute that 'ocf:pacemaker:ping' or a similar resource sets on both nodes. The value 0 means that users do not reach that node. Leadership does not move to such a node. A leader that has 0 for 10 s hands leadership to a peer with another value. None by default: then each node counts as reached.");

pub(super) const MACHINE_HOOKS: OptionRow = OptionRow::new("machine_hooks", Truth, "Whether the collector keeps hooks on the voters' Machines")
    .default("0")
    .reloadable()
    .long("Whether 'tandem collect' on the leader's node puts a hook on the Machine of each voter, which delays the deletion of the Machine. It takes the hook off a Machine that is being deleted, once a majority confirms that its node has no member. 'kubeconfig' must give access to the API that has the Machines. Where OpenShift's etcd operator runs, the collector writes no hook.");

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
