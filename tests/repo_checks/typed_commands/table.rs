//! Each command that `tandem status` can print, and the scenario of the lab that types it in a shell, in the state in which it is shown. Where
//! it is about the other node alone, `ssh NODE` precedes it.

use Typed::{By, No};

/// How a command is known to work as typed.
pub(super) enum Typed {
    /// This scenario takes it from the answer and types it.
    By(&'static str),
    /// No scenario does, for this reason.
    No(#[expect(dead_code, reason = "it is for readers")] &'static str),
}

/// It ends no state.
const SHOWS: &str = "it only shows what is wrong";
/// It has words in capitals.
const CHOOSES: &str = "the operator chooses its values";

pub(super) const ROWS: &[(&str, Typed)] = &[
    ("attrd_updater --query --all --name tandem-collected", No(SHOWS)),
    ("cibadmin --query", No(SHOWS)),
    ("corosync-quorumtool -s", No(SHOWS)),
    ("crm_attribute --name etcd_primary --update NODE", No(CHOOSES)),
    ("df -h {}", No(SHOWS)),
    ("openssl x509 -noout -enddate -in {}", No(SHOWS)),
    ("pcs cluster start", No("pcs asks systemd to start it, which these hosts do not have")),
    ("pcs cluster start {}", No("the same")),
    ("pcs constraint delete {}", By("typed_commands")),
    ("pcs node unmaintenance {}", By("typed_commands")),
    ("pcs node unstandby {}", By("typed_commands")),
    ("pcs property set maintenance-mode=false", By("typed_commands")),
    ("pcs property set stonith-enabled=true", By("typed_commands")),
    (
        "pcs property set {}=1000%",
        No("the state is of starts that fail by turns on a busy machine, which no scenario brings about"),
    ),
    ("pcs resource cleanup {}", No("a stop failed and fencing is off: fencing_by_hand has the state")),
    ("pcs resource cleanup {} node={}", By("typed_commands")),
    ("pcs resource clear {} {}", By("typed_commands")),
    ("pcs resource enable {}", By("typed_commands")),
    ("pcs resource manage {}", By("typed_commands")),
    ("pcs resource update {} image={}", By("image_typo")),
    ("pcs resource update {} {}=3", By("typed_commands")),
    ("pcs status", No(SHOWS)),
    ("pcs stonith cleanup {}", No("states_of_bmcs has the states; they end once the BMC answers again")),
    (
        "pcs stonith create fence-{} fence_redfish_rs ip=ADDRESS username=NAME password_file=FILE pcmk_host_list={}",
        No(CHOOSES),
    ),
    ("pcs stonith enable {}", By("typed_commands")),
    ("pcs stonith history show {}", No(SHOWS)),
    ("pcs {} cleanup {}", By("typed_commands")),
    ("podman exec etcd etcd --version", No(SHOWS)),
    ("rm {}", By("typed_commands")),
    ("ssh -t {} tandem fencing update {}", No("it asks for a password; fencing_update types what follows ssh")),
    ("ssh {} tandem status", By("operators_day")),
    ("systemctl enable --now tandem-collect.timer", No("these hosts have no systemd; virtual machines do")),
    ("systemctl status tandem-collect.timer tandem-collect.service", No(SHOWS)),
    ("tandem --version", No(SHOWS)),
    ("tandem certs install --ca FILE", No(CHOOSES)),
    ("tandem certs install --cert FILE --key FILE", No(CHOOSES)),
    (
        "tandem certs renew",
        No("an end is near after most of a year; the scenarios of certificates renew them by this command"),
    ),
    ("tandem certs rotate-ca", No("the same, after most of ten years")),
    ("tandem certs show", No(SHOWS)),
    ("tandem data-dir show {}", By("operators_day")),
    (
        "tandem etcdctl endpoint hashkv --cluster",
        No("database_damaged has the state, and database_full types etcdctl's words"),
    ),
    (
        "tandem etcdctl member remove {}",
        No("a member that an operator added with etcd's own command; third_voter has the state"),
    ),
    ("tandem explain", No(SHOWS)),
    ("tandem fencing check {}", No(SHOWS)),
    ("tandem fencing update {}", No("it asks for a password; fencing_update types it with one")),
    ("tandem member add NAME=ADDRESS --fence ip=ADDRESS --fence username=NAME --fence password_file=FILE", No(CHOOSES)),
    ("tandem member list", No(SHOWS)),
    ("tandem power on {}", By("typed_commands")),
    ("tandem power status {}", No(SHOWS)),
    ("tandem space --reclaim", By("database_full")),
    ("tandem status --watch", No(SHOWS)),
    ("tandem upgrade {}", By("image_upgrade")),
];
