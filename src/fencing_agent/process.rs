//! `fencing-agent` as a process: arguments, environment, runtime and exit code.

use std::ffi::OsString;
use std::fs;
use std::future::Future;
use std::io;
use std::path::PathBuf;

use clap::Parser;

use super::arguments::{Command, CommandLine, Switch};
use super::check;
use super::config::refusal::Refusal;
use super::config::{Config, EXAMPLE, Environment, key};
use super::shell::grpc::client::{Client, Unserved};
use super::shell::grpc::service;
use super::shell::place::make;
use super::shell::start::{Given, Places, Started, start};
use super::show;
use super::status::{Status, Unknown};
use crate::adapters::kubernetes::kubeconfig::Pod;
use crate::os::daemon;
use crate::os::output::{complain, say};

/// The directory where Kubernetes mounts the service account of a pod.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const FAILED: u8 = 1;
const USAGE: u8 = 2;
const UNFED: u8 = 3;

/// The reason why a command of `fencing-agent` failed, as one sentence.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Unserved(#[from] Unserved),
    #[error("{0}")]
    Unknown(#[from] Unknown),
    #[error("{0}")]
    Printed(#[from] io::Error),
}

/// Runs the program `fencing-agent` and returns its exit code. `args` are the arguments after the program's name.
pub(crate) fn main(args: &[OsString]) -> u8 {
    let name = OsString::from("fencing-agent");
    let line = match CommandLine::try_parse_from(std::iter::once(&name).chain(args)) {
        Ok(line) => line,
        Err(answer) => {
            let _ = answer.print();
            return if answer.use_stderr() { USAGE } else { 0 };
        }
    };
    let of = |dir: std::path::PathBuf| fs::canonicalize(&dir).unwrap_or(dir);
    let places = Places { config: line.config, run_dir: of(line.run_dir), state_dir: of(line.state_dir) };
    let done = match line.command {
        Command::Run(_) => return run(places),
        Command::Check(_) => check(&places),
        Command::Status(asked) => status(&places, asked.json),
        Command::Metrics(_) => metrics(&places),
        Command::Nodes(asked) => nodes(&places, asked.json),
        Command::Events(asked) => events(&places, asked.json),
        Command::Maintenance(asked) => maintain(&places, asked.switch),
        Command::Keygen(_) => key::generate().map_err(Failure::from).and_then(printed),
        Command::Example(_) => printed(EXAMPLE.trim_end()),
    };
    done.unwrap_or_else(|why| {
        complain(format_args!("fencing-agent: {why}"));
        FAILED
    })
}

fn environment() -> Environment {
    let of = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let pod = of("KUBERNETES_SERVICE_HOST").zip(of("KUBERNETES_SERVICE_PORT"));
    let pod = pod.map(|(host, port)| Pod { host, port, account: PathBuf::from(SERVICE_ACCOUNT) });
    Environment { node: of("NODE_NAME"), group: of("NODE_GROUP"), pod }
}

fn printed(text: impl std::fmt::Display) -> Result<u8, Failure> {
    say(text)?;
    Ok(0)
}

fn run(places: Places) -> u8 {
    daemon::start_logging("fencing-agent", std::env::var_os("JOURNAL_STREAM").is_some());
    daemon::abort_at_a_panic();
    match serve(places) {
        Ok(()) => 0,
        Err(why) => {
            log::error!("{why}");
            FAILED
        }
    }
}

fn serve(places: Places) -> Result<(), Refusal> {
    let signals = daemon::take_signals().map_err(|errno| Refusal::Signals { source: errno.into() })?;
    daemon::lock_memory();
    let service = std::env::var_os("NOTIFY_SOCKET");
    let given = Given { places, environment: environment(), service, signals };
    let runtime = runtime().map_err(|source| Refusal::Thread { source })?;
    runtime.block_on(async {
        let Started { shell, hub, listener } = start(given)?;
        let socket = shell.config.socket.clone();
        let (ended, end) = tokio::sync::oneshot::channel::<()>();
        let served = tokio::spawn(service::serve(listener, hub, async {
            let _ = end.await;
        }));
        shell.run().await;
        drop(ended);
        // A client that reads its last answer late does not delay the end.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(1), served).await;
        let _ = fs::remove_file(socket);
        Ok(())
    })
}

/// Creates a tokio runtime with a single thread, for datagrams and for local clients.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn check(places: &Places) -> Result<u8, Failure> {
    let config = Config::read(&places.config, environment())?;
    printed(check::report(&config, &places.run_dir)?)
}

fn status(places: &Places, is_json: bool) -> Result<u8, Failure> {
    let status = Status::read(&places.run_dir)?;
    say(if is_json { status.json()? } else { status.text() })?;
    Ok(u8::from(status.is_unfed()) * UNFED)
}

fn metrics(places: &Places) -> Result<u8, Failure> {
    printed(Status::read(&places.run_dir)?.metrics())
}

/// Runs a request to a running agent until its answer.
fn asked<T>(answer: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    runtime()?.block_on(answer)
}

fn nodes(places: &Places, is_json: bool) -> Result<u8, Failure> {
    let (socket, _) = Config::socket_and_disable_file(&places.config)?;
    asked(async {
        let nodes = Client::connect(&socket).await?.nodes().await?;
        printed(if is_json { show::nodes_as_json(&nodes)? } else { show::nodes(&nodes) })
    })
}

fn events(places: &Places, is_json: bool) -> Result<u8, Failure> {
    let (socket, _) = Config::socket_and_disable_file(&places.config)?;
    asked(async {
        let mut events = Client::connect(&socket).await?.events().await?;
        loop {
            let event = events.next().await?;
            say(if is_json { show::event_as_json(&event)? } else { show::event(&event) })?;
        }
    })
}

fn maintain(places: &Places, switch: Switch) -> Result<u8, Failure> {
    let (_, file) = Config::socket_and_disable_file(&places.config)?;
    let refused = |source| Refusal::Place { path: file.clone(), source };
    match switch {
        Switch::On => {
            if let Some(dir) = file.parent() {
                make(dir).map_err(refused)?;
            }
            fs::write(&file, "fencing-agent maintenance on\n").map_err(refused)?;
            printed(format_args!("on: {} is there; a running agent disarms within a second", file.display()))
        }
        Switch::Off => {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refused(error).into()),
                _ => {}
            }
            printed(format_args!("off: {} is gone; the agent arms once a quorum answers", file.display()))
        }
    }
}
