//! `tandem sim`, hidden: names the program that contains the model.

use std::ffi::OsString;

use clap::Args;

use super::exit::Exit;
use crate::os::output::complain;

/// Names the program that runs the model
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(super) struct Arguments {
    /// Arguments of the former `tandem sim`, which are ignored
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _any: Vec<OsString>,
}

pub(super) fn run() -> Exit {
    complain(
        "tandem: the model is a program of its own: in a checkout of Tandem, type \
         'cargo run --profile model --bin tandem-sim -- check', or 'help' for 'check'",
    );
    Exit::Usage
}
