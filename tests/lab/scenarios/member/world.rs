//! The pair, and the machine that replaces the second host.

use std::fs;
use std::time::Duration;

use super::super::setup::described::{Described, FILE};
use super::super::setup::typed::{self, Done, HERE, THERE, Typed};
use crate::cluster::etcd;
use crate::cluster::redundant;
use crate::cluster::teardown;
use crate::cluster::up::{self, Wish};
use crate::host;
use crate::host::blank::{self, Blank};
use crate::host::bmc;
use crate::host::node::{self, BMC_PASSWORD, BMC_USER, Node, Second};
use crate::host::power;
use crate::host::proc::Record;
use crate::host::state::Lab;
use crate::judge::figures;
use crate::load::writer::Writers;
use crate::programs::image;
use crate::sh::{self, Result};

/// The boot delay in seconds of a machine that lost its power for good, so that its BMC cannot bring it back in any
/// scenario.
const NEVER: &str = "3600";
/// The file on a node with the password of the new machine's BMC.
const PASSWORD: &str = "/etc/tandem/bmc-node3.password";

/// A pair that `tandem setup` has set up, with writers. The scenarios of `tandem member` replace its second host.
pub struct World<'a> {
    pub lab: &'a Lab,
    pub writers: Writers,
    bmc: Option<Record>,
    wish: Wish,
    /// The certificate of the site's CA, which signs the BMCs' certificates. Each machine of the site trusts it.
    authority: Vec<u8>,
}

/// Runs `scenario` in a lab of its own, because the second host ends as another machine.
pub fn run(lab: &Lab, wish: Wish, name: &str, scenario: impl FnOnce(&mut World<'_>) -> Result<()>) -> Result<()> {
    run_as_described(lab, wish, Described::default(), name, scenario)
}

/// Runs `scenario` as [`run`] does, on a pair that `described` describes.
pub fn run_as_described(
    lab: &Lab,
    wish: Wish,
    described: Described,
    name: &str,
    scenario: impl FnOnce(&mut World<'_>) -> Result<()>,
) -> Result<()> {
    let done = begin(lab, wish, described).and_then(|mut world| {
        let done = scenario(&mut world);
        if let Some(bmc) = &world.bmc {
            let _ = bmc.kill();
        }
        done
    });
    if lab.exists() {
        if done.is_err() {
            println!("   logs: {}", teardown::keep_logs(lab, name).display());
        }
        teardown::down(lab);
    }
    node::call_second(Second::Node2);
    done
}

fn begin(lab: &Lab, wish: Wish, described: Described) -> Result<World<'_>> {
    let wish = Wish { blank: Some(Blank::Rpm), ..wish };
    up::up(lab, wish)?;
    described.write(lab)?;
    typed::typed(lab, HERE, &format!("tandem setup {FILE} --ssh root@{THERE}"))?.must_be(0)?;
    let authority = fs::read(lab.pki().join("ca.crt"))?;
    if !described.own_certificates {
        super::super::setup::become_a_client(lab)?;
    }
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    redundant::wait(lab)?;
    let writers = super::super::writing(lab)?;
    Ok(World { lab, writers, bmc: None, wish, authority })
}

impl World<'_> {
    /// Cuts the power of the second host for good, and waits until the first one runs standalone.
    pub fn cut_for_good(&self) -> Result<()> {
        self.lab.set("boot-delay", NEVER)?;
        power::cut(self.lab, THERE)?;
        super::super::steps::wait_alone(self.lab, HERE).map(drop)
    }

    /// Cuts the power of the second host for good. The third voter and the first host must take writes within
    /// `limit`.
    pub fn cut_beside_a_third_voter(&self, limit: Duration) -> Result<()> {
        self.lab.set("boot-delay", NEVER)?;
        power::cut(self.lab, THERE)?;
        super::super::steps::wait_write(&self.writers, limit)?;
        super::super::steps::wait_peer_gone(self.lab, HERE)
    }

    /// Cuts the power of the second host for good and makes its BMC unreachable, so that it cannot be fenced.
    pub fn cut_with_its_bmc(&self) -> Result<()> {
        self.lab.set("boot-delay", NEVER)?;
        bmc::set_mode(self.lab, THERE, "unreachable")?;
        power::cut(self.lab, THERE)?;
        super::super::steps::wait_peer_gone(self.lab, HERE)
    }

    /// Starts the BMC of the new machine, node3, and writes the BMC's password to the node where the operator types.
    pub fn bmc_of_node3(&mut self) -> Result<()> {
        node::call_second(Second::Node3);
        let started = bmc::start_another(self.lab);
        node::call_second(Second::Node2);
        self.bmc = Some(started?);
        self.bmc_password()
    }

    /// Writes the password of node3's BMC to the node where the operator types.
    pub fn bmc_password(&self) -> Result<()> {
        host::put(self.lab, HERE, PASSWORD, &format!("{BMC_PASSWORD}\n"))?;
        host::must(self.lab, HERE, &["chmod", "600", PASSWORD]).map(drop)
    }

    /// Returns the options of `tandem member replace` that describe the BMC of node2 or node3.
    pub fn fence(number: u8) -> String {
        format!(
            "--fence ip=10.98.0.10{number} --fence username={BMC_USER} \
             --fence systems_uri=/redfish/v1/Systems/System.Embedded.{number} --fence password_file={PASSWORD}"
        )
    }

    /// Returns the options of `tandem member replace` that describe node3 as the replacement.
    pub fn as_node3() -> String {
        format!("--new node3=10.99.0.3 {}", Self::fence(3))
    }

    /// Replaces the second host by another machine with blank disks, the packages and etcd's image.
    pub fn swap(&self, second: Second) -> Result<()> {
        let lab = self.lab;
        power::cut(lab, THERE)?;
        host::remove(lab, THERE);
        node::call_second(second);
        if second == Second::Node2 {
            for dir in ["disk", "work"] {
                let _ = fs::remove_dir_all(lab.node_dir(THERE).join(dir));
            }
        }
        lab.set("boot-delay", "0")?;
        host::make_disks(lab, THERE, &[])?;
        blank::make_keys_of(lab, THERE)?;
        let trusted = lab.disk(THERE, "etc").join("ssl/certs/ca-certificates.crt");
        let bundle = [fs::read(&trusted)?, self.authority.clone()].concat();
        sh::write(&trusted, bundle)?;
        power::on(lab, THERE)?;
        host::wait_booted(lab, THERE)?;
        let rootfs = image::rootfs(self.wish.etcd, image::Tools::None)?;
        host::import_image(lab, THERE, &rootfs, &image::name(self.wish.etcd.number()))
    }

    /// Waits for the join file of `command`, copies it to the new machine, and starts `tandem setup join` there.
    pub fn begin_join(&self, command: &mut Typed) -> Result<Typed> {
        // pcs may wait half a minute for a machine that is gone, more than once.
        Self::wait_said(command, "tandem setup join /etc/tandem/")?;
        let content = typed::wait_join_file(self.lab, command)?;
        typed::carry(self.lab, &content)?;
        Typed::begin(self.lab, THERE, &typed::join_line())
    }

    /// Joins as [`Self::begin_join`] does, and waits until the commands on both nodes have succeeded.
    pub fn join(&self, mut command: Typed) -> Result<Done> {
        let there = self.begin_join(&mut command)?;
        let began = std::time::Instant::now();
        let done = command.done()?;
        println!("   {}", done.said.trim().replace('\n', "\n   "));
        done.must_be(0)?;
        figures::print(format!("from 'tandem setup join' to the end: {:.0} s", began.elapsed().as_secs_f64()));
        there.done()?.must_be(0)?;
        Ok(done)
    }

    /// Checks the common ending (`super::super::ends_well`): two voters, no lost write, and no failure in Pacemaker.
    /// In addition the CIB must not contain the node `gone`, and no trace of the change may be left.
    pub fn ends_well(&mut self, gone: Option<&str>) -> Result<()> {
        super::super::ends_well(self.lab, &mut self.writers)?;
        let cib = host::must(self.lab, HERE, &["cibadmin", "--query", "--scope", "configuration"])?;
        if let Some(gone) = gone
            && cib.contains(gone)
        {
            return Err(format!("the CIB still knows {gone}").into());
        }
        if cib.contains("etcd_member_change") {
            return Err("the lock of the change is left behind".into());
        }
        let there = host::output(self.lab, HERE, &["test", "-e", "/var/lib/tandem/member-change.json"])?;
        if there.ok { Err("the file of the change is left behind".into()) } else { Ok(()) }
    }

    /// Waits until `command` has printed `words`.
    pub fn wait_said(command: &Typed, words: &str) -> Result<()> {
        let said = || command.said().contains(words).then_some(());
        sh::wait_for(
            &format!("the command to say '{words}'"),
            Duration::from_secs(240),
            Duration::from_millis(100),
            said,
        )
        .map_err(|error| format!("{error}: {}", command.said()).into())
    }

    pub fn begin(&self, line: &str) -> Result<Typed> {
        Typed::begin(self.lab, Node::One, line)
    }
}
