//! The program with faults that the lab switches on, to show that its checks can fail. It is built only for the
//! scenario that needs it, because the program for users must not contain the faults.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::judge::decisions;
use crate::programs;
use crate::sh::{self, Result};

/// Builds a `tandem` with faults that the lab can switch on, and installs it on both hosts. Before that, the old
/// program replays the decisions that it recorded.
pub fn install(lab: &Lab) -> Result<()> {
    println!("   building the program with the lab's faults");
    let built = build()?;
    decisions::replay(lab, "before_the_faults")?;
    NODES.into_iter().try_for_each(|node| programs::put(lab, node, &built))
}

/// Switches the fault `name` of the installed program on or off on both hosts. The switch survives a power cut.
pub fn switch(lab: &Lab, name: &str, on: bool) -> Result<()> {
    const ON: &str = "touch \"$1\" && sync \"$1\" \"${1%/*}\"";
    let script = if on { ON } else { "rm -f \"$1\"" };
    let path = format!("/etc/tandem/{name}");
    NODES.into_iter().try_for_each(|node| host::must(lab, node, &["sh", "-c", script, "sh", &path]).map(drop))
}

/// Builds the `tandem` with faults next to the lab's own one, from the same dependencies. Only the program itself is
/// built anew, without optimisation, because a lab waits for it. Its version differs from the lab's own.
pub fn build() -> Result<PathBuf> {
    // This is `target/debug`, or the directory of another profile.
    let directory = Path::new(env!("CARGO_BIN_EXE_tandem")).parent().ok_or("the program is in no directory")?;
    let target = directory.parent().ok_or("the program is in no target directory")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    sh::must(
        sh::without_package(&mut command)
            .args(["build", "--quiet", "--locked", "--features", "lab-faults", "--example", "tandem-with-faults"])
            .args(["--profile", if directory.ends_with("debug") { "dev" } else { "release" }])
            .args(["--config", "profile.dev.package.tandem.opt-level=0"])
            .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
            .arg("--target-dir")
            .arg(target),
    )?;
    Ok(directory.join("examples/tandem-with-faults"))
}
