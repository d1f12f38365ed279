//! QEMU's command line: what a host's board has on it.

use std::fs;
use std::process::{Command, Stdio};

use super::{disk, nbd, record};
use crate::net;
use crate::node::Node;
use crate::sh::{self, Result};
use crate::state::Lab;

const PROGRAM: &str = "qemu-system-x86_64";
/// A newer one costs an emulated boot seconds: programs use what it offers, and each of that is slow.
const CPU: &str = "Westmere,pcid=off";
/// A panic stands still until somebody cuts the power. What a machine looks for that has no real hardware is left out.
const KERNEL_LINE: &str = "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off nokaslr no_timer_check \
                           tsc=reliable apparmor=0 audit=0 panic=0";

pub fn check() -> Result<()> {
    match sh::output(Command::new(PROGRAM).arg("--version")) {
        Ok(done) if done.ok => Ok(()),
        _ => Err(format!("{PROGRAM} is not installed; run tests/lab/setup-vm").into()),
    }
}

/// What a process of it can be told by.
pub fn name(lab: &Lab, node: Node) -> String {
    format!("tandem-lab-{}-{node}", lab.name)
}

/// Switches the machine on. Its cables and its disk's server must be there already.
pub fn start(lab: &Lab, node: Node) -> Result<()> {
    let dir = lab.node_dir(node);
    let (pidfile, said) = (dir.join("qemu.pid"), dir.join("qemu.log"));
    let _ = fs::remove_file(&pidfile);
    let log = fs::File::create(&said)?;
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", net::switch_handle(lab).display())).arg(PROGRAM);
    command.args(["-name", &name(lab, node), "-uuid", &node.uuid(), "-accel", "tcg,thread=multi,tb-size=512"]);
    command.args(["-machine", "q35", "-cpu", CPU, "-smp", "1", "-m", "1536", "-nodefaults", "-vga", "none"]);
    command.args(["-display", "none", "-device", "virtio-rng-pci", "-device", "i6300esb", "-action", "watchdog=reset"]);
    command.arg("-kernel").arg(disk::kernel(lab)).arg("-initrd").arg(disk::initrd(lab));
    command.args(["-append", KERNEL_LINE]);
    // The server honours each flush, and only those; QEMU itself keeps nothing back.
    command.arg("-drive").arg(format!(
        "driver=raw,file.driver=nbd,file.server.type=unix,file.server.path={},if=none,id=disk,cache.direct=off",
        nbd::socket(lab, node).display()
    ));
    command.args(["-device", "virtio-blk-pci,drive=disk,write-cache=on"]);
    for (number, port) in (0_u8..).zip(net::ports(node)) {
        let mac = node.mac(number);
        command.args(["-netdev", &format!("tap,id=net{number},ifname={port},script=no,downscript=no")]);
        command.args(["-device", &format!("virtio-net-pci,netdev=net{number},mac={mac},romfile=")]);
    }
    // The guest's journal, line by line, so that it is there whatever becomes of the guest; and what its kernel says.
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
