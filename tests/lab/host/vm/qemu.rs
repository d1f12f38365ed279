//! QEMU's command line, which describes a host's hardware.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::disk::{self, Drive};
use super::{nbd, record};
use crate::host::net;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::{self, Result};

const PROGRAM: &str = "qemu-system-x86_64";
/// The time within which a kernel prints its first line if KVM works on this machine.
const FIRST_WORD: Duration = Duration::from_secs(10);
const SETTING: &str = "accelerator";
/// The guest kernel's command line. A panic halts the virtual machine until a power cut. Checks of real hardware are
/// disabled.
const KERNEL_LINE: &str = "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off nokaslr no_timer_check \
                           tsc=reliable apparmor=0 audit=0 panic=0";

pub fn check() -> Result<()> {
    match sh::output(Command::new(PROGRAM).arg("--version")) {
        Ok(done) if done.ok => Ok(()),
        _ => Err(format!("{PROGRAM} is not installed; run tests/lab/setup-vm").into()),
    }
}

/// The mechanism that executes the guests' instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accelerator {
    /// The processor's virtualization, by KVM.
    Kvm,
    /// QEMU's emulation (TCG), which is ten to thirty times slower than KVM.
    Tcg,
}

impl Accelerator {
    fn of(lab: &Lab) -> Self {
        if lab.setting(SETTING).as_deref() == Some("kvm") { Self::Kvm } else { Self::Tcg }
    }

    fn options(self) -> [&'static str; 4] {
        match self {
            Self::Kvm => ["-accel", "kvm", "-cpu", "host"],
            // A newer processor makes an emulated boot seconds longer, because programs then use instructions that are
            // slow to emulate.
            Self::Tcg => ["-accel", "tcg,thread=multi,tb-size=512", "-cpu", "Westmere,pcid=off"],
        }
    }
}

/// Returns the factor by which a lab of virtual machines stretches all waits, compared with hosts of namespaces.
pub fn slower(lab: &Lab) -> u32 {
    match Accelerator::of(lab) {
        Accelerator::Kvm => 2,
        Accelerator::Tcg => 8,
    }
}

/// Determines whether KVM is usable, and stores the result for this lab. Under some machines' KVM a distribution's
/// kernel never prints its first line.
pub fn choose_accelerator(lab: &Lab) -> Result<()> {
    let works = Path::new("/dev/kvm").exists() && says_a_word(lab, Accelerator::Kvm)?;
    println!("virtual machines {}", if works { "by KVM" } else { "without KVM: all of it takes its time" });
    lab.set(SETTING, if works { "kvm" } else { "tcg" })
}

fn says_a_word(lab: &Lab, accelerator: Accelerator) -> Result<bool> {
    let console = lab.dir().join("probe.log");
    let mut command = Command::new(PROGRAM);
    command.args(accelerator.options()).args(["-machine", "q35", "-m", "512", "-nodefaults", "-display", "none"]);
    command.arg("-kernel").arg(disk::kernel(lab)).arg("-initrd").arg(disk::initrd(lab));
    command.args(["-append", &format!("{KERNEL_LINE} {}", disk::PROBE)]);
    command.arg("-serial").arg(format!("file:{}", console.display()));
    let mut probe = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let said = || fs::read_to_string(&console).is_ok_and(|text| text.contains(disk::WORD));
    let ended = || said() || probe.try_wait().is_ok_and(|status| status.is_some());
    sh::wait_for_quietly(FIRST_WORD, Duration::from_millis(100), ended);
    let _ = probe.kill();
    probe.wait()?;
    Ok(said())
}

/// Returns the name of the node's QEMU process, which no other lab uses.
fn name(lab: &Lab, node: Node) -> String {
    format!("tandem-lab-{}-{node}", lab.name)
}

/// Starts the node's virtual machine. Its network links and the server of its disk must exist already.
pub fn start(lab: &Lab, node: Node) -> Result<()> {
    let dir = lab.node_dir(node);
    let (pidfile, said) = (dir.join("qemu.pid"), dir.join("qemu.log"));
    let _ = fs::remove_file(&pidfile);
    let log = fs::File::create(&said)?;
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", net::switch_handle(lab).display())).arg(PROGRAM);
    command.args(["-name", &name(lab, node), "-uuid", &node.uuid()]);
    command.args(Accelerator::of(lab).options());
    command.args(["-machine", "q35", "-smp", "1", "-m", "1536", "-nodefaults", "-vga", "none"]);
    command.args(["-display", "none", "-device", "virtio-rng-pci", "-device", "i6300esb", "-action", "watchdog=reset"]);
    command.arg("-kernel").arg(disk::kernel(lab)).arg("-initrd").arg(disk::initrd(lab));
    command.args(["-append", KERNEL_LINE]);
    // The servers honour each flush, and only flushes; QEMU itself caches nothing.
    for drive in Drive::of(lab) {
        let (id, socket) = (drive.word(), nbd::socket(lab, node, *drive));
        command.arg("-drive").arg(format!(
            "driver=raw,file.driver=nbd,file.server.type=unix,file.server.path={},if=none,id={id},cache.direct=off",
            socket.display()
        ));
        command.args(["-device", &format!("virtio-blk-pci,drive={id},write-cache=on")]);
    }
    for (number, port) in (0_u8..).zip(net::ports(node)) {
        let mac = node.mac(number);
        command.args(["-netdev", &format!("tap,id=net{number},ifname={port},script=no,downscript=no")]);
        command.args(["-device", &format!("virtio-net-pci,netdev=net{number},mac={mac},romfile=")]);
    }
    // The guest's journal arrives line by line, so that it survives the guest. The serial port carries the kernel's
    // messages.
    let messages = lab.messages(node);
    command.arg("-chardev").arg(format!("file,id=journal,append=on,path={}", messages.display()));
    command.args(["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=journal,name=lab.journal"]);
    command.arg("-serial").arg(format!("file:{}", dir.join("console.log").display()));
    command.arg("-qmp").arg(format!("unix:{},server=on,wait=off", dir.join("qmp").display()));
    command.arg("-pidfile").arg(&pidfile).arg("-daemonize");
    let status = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).status()?;
    if !status.success() {
        let said = fs::read_to_string(&said).unwrap_or_default();
        return Err(format!("{node} does not boot: {}", said.trim()).into());
    }
    record(&pidfile)?.save(&lab.init_record(node))
}
