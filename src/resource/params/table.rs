//! Every parameter, in the order in which the meta-data lists them. The first part has the names, defaults and meanings
//! of the shell agent `ocf:heartbeat:podman-etcd`; the second is for clusters without a pod manifest.

use crate::ocf::metadata::Parameter;

/// The table from which the parameters are parsed and described.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "node_ip_map",
        "string",
        "Nodes and their addresses",
        "The cluster's nodes and the IP addresses under which their etcd members reach each other, as 'node1:192.0.2.1;node2:192.0.2.2'. Names are the cluster nodes' names. An IPv6 address may be written with or without brackets. One entry makes a cluster of one.",
    )
    .required(),
    Parameter::new(
        "pod_manifest",
        "string",
        "Pod manifest of etcd",
        "The file with etcd's pod manifest, in JSON, as OpenShift's cluster-etcd-operator writes it: from it come the image, the certificates and etcd's settings. It is not read where 'image' and the certificates are given.",
    )
    .or("/etc/kubernetes/static-pod-resources/etcd-certs/configmaps/external-etcd-pod/pod.yaml"),
    Parameter::new(
        "image",
        "string",
        "Container image",
        "The image that etcd runs from, as podman names it, e.g. 'registry.example.com/etcd:v3.5.21'; 'default' takes it from the pod manifest.",
    )
    .or("default"),
    Parameter::new("name", "string", "Container name", "The name of the container.").or("etcd"),
    Parameter::new(
        "nic",
        "string",
        "Network interface",
        "Accepted for compatibility and not used: the addresses come from 'node_ip_map'.",
    )
    .or("br-ex")
    .reloadable(),
    Parameter::new(
        "authfile",
        "string",
        "Credentials for the registry",
        "The file with the registry's credentials that podman pulls the image with, where it exists.",
    )
    .or("/var/lib/kubelet/config.json")
    .reloadable(),
    Parameter::new(
        "allow_pull",
        "boolean",
        "Whether to pull the image",
        "Whether the image is pulled where this node does not have it.",
    )
    .or("1")
    .reloadable(),
    Parameter::new(
        "run_opts",
        "string",
        "More options of podman run",
        "Options added to 'podman run', separated by blanks. The container's name is set with 'name'.",
    ),
    Parameter::new(
        "run_cmd",
        "string",
        "Program in the container",
        "The program that runs in the container, where it is not the image's 'etcd'. It gets '--config-file' with etcd's configuration.",
    ),
    Parameter::new(
        "run_cmd_opts",
        "string",
        "More arguments of the program",
        "Arguments that follow '--config-file', separated by blanks.",
    ),
    Parameter::new(
        "mount_points",
        "string",
        "Directories to make",
        "Directories, separated by commas, that are made before the container starts where they do not exist.",
    ),
    Parameter::new(
        "monitor_cmd",
        "string",
        "Extra health check",
        "A command, with its full path, that every monitor runs in the container besides asking etcd itself; an exit code other than 0 means that the member has failed. None by default: etcd's own answer says more.",
    )
    .reloadable(),
    Parameter::new(
        "force_kill",
        "boolean",
        "Whether to stop without grace",
        "Whether etcd is killed at a stop instead of being asked to end.",
    )
    .or("0")
    .reloadable(),
    Parameter::new(
        "reuse",
        "boolean",
        "Whether to keep the container",
        "Accepted for compatibility and not used: a container is always kept and started again, until its image, its manifest or its options change; then it is kept as '<name>-previous'.",
    )
    .or("0")
    .reloadable(),
    Parameter::new(
        "drop_in_dependency",
        "boolean",
        "Whether systemd stops Pacemaker first",
        "Whether the container's systemd scopes get drop-ins that let a shutdown of the machine stop Pacemaker, and with it etcd, before systemd ends the container. Also on where /etc/sysconfig/podman_drop_in or /etc/default/podman_drop_in exists.",
    ),
    Parameter::new(
        "oom",
        "integer",
        "OOM score adjustment",
        "How willing the kernel is to end etcd when memory runs out, from -1000 (never) to 1000. 0 leaves it alone; default: -997.",
    )
    .or("-997")
    .reloadable(),
    Parameter::new(
        "config_location",
        "string",
        "Directory for etcd's configuration",
        "The directory for etcd's configuration file and for the copy of the pod manifest that the container was made from.",
    )
    .or("/var/lib/etcd"),
    Parameter::new(
        "backup_location",
        "string",
        "Directory for database snapshots",
        "The directory for copies 'snapshot-YYYYMMDD-HHMMSS.db' of the database of a data dir that is moved aside.",
    )
    .or("/var/lib/etcd")
    .reloadable(),
    Parameter::new(
        "max_backup_snapshots",
        "integer",
        "Backups to keep",
        "How many data dirs that were moved aside are kept once this node votes again, and how many database snapshots. Until then no data dir is deleted, unless the disk has no room for the data that it is to get; then the oldest go first, and never one that may still be needed.",
    )
    .or("3")
    .reloadable(),
    Parameter::new(
        "kubeconfig",
        "string",
        "Access to the Kubernetes API",
        "The kubeconfig with which OpenShift is asked whether a node's Machine is being deleted, so that its member is not added again. Where the file does not exist, nobody is asked.",
    )
    .or("/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig")
    .reloadable(),
    Parameter::new(
        "data_dir",
        "string",
        "etcd's data dir",
        "The directory that holds etcd's data (in 'member'), the data that was moved aside, and the agent's durable note. By default that of the pod manifest, else /var/lib/etcd.",
    ),
    Parameter::new(
        "trusted_ca_file",
        "string",
        "CA certificates",
        "The PEM file with the certificates of the authority that signed the members' and the clients' certificates. With 'cert_file', 'key_file' and 'image' it replaces the pod manifest.",
    ),
    Parameter::new(
        "cert_file",
        "string",
        "Certificate",
        "The PEM file with this node's certificate, for clients and for other members, with this node's address in it.",
    ),
    Parameter::new("key_file", "string", "Private key", "The PEM file with the private key of 'cert_file'."),
    Parameter::new(
        "peer_cert_file",
        "string",
        "Certificate between members",
        "The PEM file with the certificate that members show each other; 'cert_file' where it is not given.",
    ),
    Parameter::new(
        "peer_key_file",
        "string",
        "Private key between members",
        "The PEM file with the private key of 'peer_cert_file'.",
    ),
    Parameter::new(
        "client_cert_file",
        "string",
        "The agent's certificate",
        "The PEM file with the client certificate that the agent itself asks etcd with; 'cert_file' where it is not given.",
    ),
    Parameter::new(
        "client_key_file",
        "string",
        "The agent's private key",
        "The PEM file with the private key of 'client_cert_file'.",
    ),
    Parameter::new("client_port", "integer", "Port for clients", "The TCP port on which etcd serves clients.")
        .or("2379"),
    Parameter::new("peer_port", "integer", "Port for members", "The TCP port on which members reach each other.")
        .or("2380"),
    Parameter::new(
        "etcd_settings",
        "string",
        "More settings of etcd",
        "Settings of etcd's configuration file, as 'heartbeat-interval=100;election-timeout=1000', named as etcd's own options are. They go before those of the pod manifest.",
    ),
    Parameter::new(
        "promote_max_lag",
        "integer",
        "Largest lag of a learner to promote, in log entries",
        "A learner becomes a voter once it lacks at most this many entries of the leader's log in two polls in a row. From then on every write waits for it.",
    )
    .or("100")
    .reloadable(),
];
