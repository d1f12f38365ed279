//! Each command that `tandem status` can print, and the lab's scenario that types it in a shell, in the state in which
//! it is shown. A command for the other node follows `ssh NODE`.

use Typed::{By, Healthy, No};

/// The evidence that a printed command works as typed.
pub(super) enum Typed {
    /// The lab's scenario that reads the command from the answer of `tandem status` and types it.
    By(&'static str),
    /// The lab's scenario that types the command on a healthy pair. The command resolves no problem by itself, or belongs to a problem
    /// that no scenario causes.
    Healthy(&'static str),
    /// The reason why no scenario types the command.
    No(#[expect(dead_code, reason = "it is for readers")] &'static str),
}

/// The evidence for a command that only shows something.
const SHOWS: Typed = Healthy("typed_commands");
/// The reason why no scenario types a command that contains words in capitals.
const CHOOSES: &str = "the operator chooses its values";

pub(super) const ROWS: &[(&str, Typed)] = &[
    ("attrd_updater --query --all --name tandem-collected", SHOWS),
    ("cibadmin --query", SHOWS),
    ("corosync-quorumtool -s", SHOWS),
    ("crm_attribute --name etcd_primary --update NODE", No(CHOOSES)),
    ("df -h {}", SHOWS),
    ("journalctl --no-pager --lines 50 --unit {}", No("these hosts have no systemd; virtual machines do")),
    ("openssl x509 -noout -enddate -in {}", SHOWS),
    ("pcs cluster start", No("pcs asks systemd to start it, which these hosts do not have")),
    ("pcs cluster start {}", No("the same")),
    ("pcs constraint delete {}", By("typed_commands")),
    ("pcs node unmaintenance {}", By("typed_commands")),
    ("pcs node unstandby {}", By("typed_commands")),
    ("pcs property set maintenance-mode=false", By("typed_commands")),
    ("pcs property set stonith-enabled=true", By("typed_commands")),
    // Shown if starts fail while Pacemaker starts one etcd at a time on a busy machine (`starts-by-turns`).
    ("pcs property set {}=1000%", Healthy("typed_commands")),
    // A stop failed and fencing is off. `fencing_by_hand` has the state.
    ("pcs resource cleanup {}", Healthy("typed_commands")),
    ("pcs resource cleanup {} node={}", By("typed_commands")),
    ("pcs resource clear {} {}", By("typed_commands")),
    ("pcs resource enable {}", By("typed_commands")),
    ("pcs resource manage {}", By("typed_commands")),
    ("pcs resource update {} image={}", By("image_typo")),
    ("pcs resource update {} {}=", By("typed_commands")),
    ("pcs resource update {} {}=3", By("typed_commands")),
    ("pcs status", SHOWS),
    // `states_of_bmcs` has the states, which end once the BMC answers again.
    ("pcs stonith cleanup {}", Healthy("typed_commands")),
    (
        "pcs stonith create fence-{} fence_redfish_rs ip=ADDRESS username=NAME password_file=FILE pcmk_host_list={}",
        No(CHOOSES),
    ),
    ("pcs stonith enable {}", By("typed_commands")),
    ("pcs stonith history show {}", SHOWS),
    ("pcs {} cleanup {}", By("typed_commands")),
    ("podman exec etcd etcd --version", SHOWS),
    ("rm {}", By("typed_commands")),
    ("ssh -t {} tandem fencing update {}", No("it asks for a password; fencing_update types what follows ssh")),
    ("ssh {} tandem status", By("operators_day")),
    ("systemctl enable --now tandem-collect.timer", No("these hosts have no systemd; virtual machines do")),
    ("systemctl enable tandem-lone-boot", No("the same")),
    ("systemctl status tandem-collect.timer tandem-collect.service", No("the same")),
    ("tandem --version", SHOWS),
    ("tandem certs install --ca FILE", No(CHOOSES)),
    ("tandem certs install --cert FILE --key FILE", No(CHOOSES)),
    (
        "tandem certs renew",
        No("an end is near after most of a year; the scenarios of certificates renew them by this command"),
    ),
    ("tandem certs rotate-ca", No("the same, after most of ten years")),
    ("tandem certs show", SHOWS),
    ("tandem data-dir diff {} live", By("operators_day")),
    ("tandem data-dir show {}", By("operators_day")),
    // `database_damaged` has the state.
    ("tandem etcdctl endpoint hashkv --cluster", Healthy("typed_commands")),
    ("tandem etcdctl member remove {}", By("typed_commands")),
    ("tandem explain", SHOWS),
    ("tandem fencing check {}", SHOWS),
    ("tandem fencing update {} --from-secret", No("the lab's API has no Secrets of BMCs")),
    ("tandem fencing update {}", No("it asks for a password; fencing_update types it with one")),
    ("tandem member add NAME=ADDRESS --fence ip=ADDRESS --fence username=NAME --fence password_file=FILE", No(CHOOSES)),
    ("tandem member list", SHOWS),
    ("tandem power on {}", By("typed_commands")),
    ("tandem power status {}", SHOWS),
    ("tandem space --reclaim", By("database_full")),
    ("tandem status --watch", By("operators_day")),
    ("tandem upgrade {}", By("image_upgrade")),
];
