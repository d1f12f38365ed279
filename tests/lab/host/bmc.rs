//! A BMC for each host: Redfish over HTTPS. Its power actions are the lab's own power commands. One background
//! process serves both BMCs in the switch's network namespace, so that it survives the power cuts of the hosts.

pub mod accounts;
pub mod sessions;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::host::net;
use crate::host::node::{BMC_PASSWORD, NODES, Node};
use crate::host::power;
use crate::host::proc::Record;
use crate::host::state::{Lab, append_stamped};
use crate::host::tls;
use crate::sh::{self, Result};

/// The modes of a BMC. The last one is the normal mode. With `stranger` the BMC reports another machine's UUID. With
/// `says-off` it reports a running machine as off. With `echo` it sends back the request's body, and with
/// `echo-refusing` it does so in an error.
const MODES: &[&str] = &["refuse", "hang", "unreachable", "stranger", "says-off", "echo", "echo-refusing", "ok"];
/// The UUID that a BMC reports in the mode `stranger`.
const STRANGER: &str = "7a4e1000-0000-4000-8000-0000000000ff";
const RESET_TYPES: &[&str] = &["On", "ForceOff", "ForceRestart"];
const OFF_TAKES: &str = "bmc-off-takes";
const LATE: &str = "bmc-late";
/// The time after which a BMC in the mode `hang` closes the connection.
const HANG: Duration = Duration::from_secs(120);
const BODY_LIMIT: usize = 64 * 1024;

/// Starts the process that serves both BMCs, and waits until it listens.
pub fn start(lab: &Lab) -> Result<()> {
    let log = std::fs::OpenOptions::new().append(true).create(true).open(lab.dir().join("bmc.err"))?;
    spawn(lab, log)?.save(&lab.bmc_record())?;
    sh::wait_for("the BMCs to listen", Duration::from_secs(60), Duration::from_millis(20), || {
        lab.setting("bmc-listens").map(drop)
    })
}

/// Starts a second process that serves BMCs, for the machine that replaces the second host.
pub fn start_another(lab: &Lab) -> Result<Record> {
    net::set_bmc_address(lab, Node::Two, true)?;
    lab.set("bmc-listens", "")?;
    let log = std::fs::OpenOptions::new().append(true).create(true).open(lab.dir().join("bmc.err"))?;
    let record = spawn(lab, log)?;
    let listens = || lab.setting("bmc-listens").filter(|word| !word.is_empty()).map(drop);
    sh::wait_for("another BMC to listen", Duration::from_secs(60), Duration::from_millis(20), listens)?;
    Ok(record)
}

fn spawn(lab: &Lab, log: std::fs::File) -> Result<Record> {
    let child = Command::new("/proc/self/exe")
        .args(["--name", &lab.name, "bmc-daemon", Node::Two.name()])
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    Record::of(child.id())
}

/// Returns the current mode of a BMC.
pub fn mode(lab: &Lab, node: Node) -> String {
    lab.setting(&format!("bmc-{node}")).unwrap_or_else(|| "ok".to_owned())
}

/// Sets the mode of a BMC: it refuses the password, hangs, is unreachable, reports false states, or works normally.
pub fn set_mode(lab: &Lab, node: Node, mode: &str) -> Result<()> {
    if !MODES.contains(&mode) {
        return Err(format!("a BMC cannot be '{mode}'; type one of {}", MODES.join(", ")).into());
    }
    lab.set(&format!("bmc-{node}"), mode)?;
    lab.event(&format!("BMC of {node}: {mode}"));
    net::set_bmc_address(lab, node, mode != "unreachable")
}

/// Sets the time from the BMC's answer to `ForceOff` until the power is off. The default is zero.
pub fn set_off_takes(lab: &Lab, time: Duration) -> Result<()> {
    lab.set(OFF_TAKES, &time.as_secs().to_string())
}

fn off_takes(lab: &Lab) -> Duration {
    Duration::from_secs(lab.setting(OFF_TAKES).and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// Sets the time between a request to a BMC and its answer. The default is zero.
pub fn set_late(lab: &Lab, node: Node, time: Duration) -> Result<()> {
    lab.set(&format!("{LATE}-{node}"), &time.as_millis().to_string())
}

fn late(lab: &Lab, node: Node) -> Duration {
    let millis = lab.setting(&format!("{LATE}-{node}")).and_then(|text| text.parse().ok());
    Duration::from_millis(millis.unwrap_or(0))
}

/// Serves the Redfish requests to both BMCs, and does not return.
pub fn daemon(lab: &Lab) -> Result<()> {
    nix::unistd::setsid()?;
    let network = std::fs::File::open(net::switch_handle(lab))?;
    setns(network, CloneFlags::CLONE_NEWNET)?;
    for node in NODES {
        let listener = match TcpListener::bind((node.bmc_ip().as_str(), 443)) {
            Ok(listener) => listener,
            // Another daemon of the lab already serves as this host's BMC.
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => continue,
            Err(error) => return Err(error.into()),
        };
        let config = Arc::new(tls_config(lab, node)?);
        let lab = lab.clone();
        std::thread::spawn(move || serve(&lab, node, &listener, &config));
    }
    lab.set("bmc-listens", "yes")?;
    loop {
        std::thread::park();
    }
}

fn tls_config(lab: &Lab, node: Node) -> Result<ServerConfig> {
    let file = |extension: &str| lab.pki().join(format!("{}.{extension}", tls::bmc_name(node)));
    let certificate = CertificateDer::from_pem_file(file("crt"))?;
    let key = PrivateKeyDer::from_pem_file(file("key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?)
}

fn serve(lab: &Lab, node: Node, listener: &TcpListener, config: &Arc<ServerConfig>) {
    for stream in listener.incoming().flatten() {
        let (lab, config) = (lab.clone(), Arc::clone(config));
        std::thread::spawn(move || {
            // A caller that hangs up early is no fault of the daemon.
            let _ = converse(&lab, node, stream, config);
        });
    }
}

/// Answers the HTTPS requests on one connection until the caller closes it.
fn converse(lab: &Lab, node: Node, stream: TcpStream, config: Arc<ServerConfig>) -> Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.set_nodelay(true)?;
    let origin = stream.peer_addr()?.ip().to_string();
    let mut tls = BufReader::new(StreamOwned::new(ServerConnection::new(config)?, stream));
    while let Some(request) = Request::read(&mut tls, &origin)? {
        if mode(lab, node) == "hang" {
            log(lab, node, &format!("{} {}: hangs", request.method, request.path));
            let began = Instant::now();
            while mode(lab, node) == "hang" && began.elapsed() < HANG {
                std::thread::sleep(Duration::from_millis(200));
            }
            return Ok(());
        }
        std::thread::sleep(late(lab, node));
        let reply = answer(lab, node, &request);
        log(lab, node, &format!("{} {} {}-> {}", request.method, request.path, request.brief(), reply.status));
        reply.write(tls.get_mut())?;
        if let Some(action) = reply.action {
            press(lab, node, action);
        }
    }
    Ok(())
}

fn log(lab: &Lab, node: Node, text: &str) {
    append_stamped(&lab.bmc_log(), &format!("bmc-{node}"), text);
}

/// Performs the power action after the BMC's answer is sent. On real machines, too, the power goes off later than the
/// answer arrives.
fn press(lab: &Lab, node: Node, action: &'static str) {
    let lab = lab.clone();
    std::thread::spawn(move || {
        if action != "On" {
            std::thread::sleep(off_takes(&lab));
        }
        let done = match action {
            "On" => power::on(&lab, node),
            "ForceOff" => power::cut(&lab, node),
            _ => power::cut(&lab, node).and_then(|()| power::on(&lab, node)),
        };
        match done {
            Ok(()) => log(&lab, node, &format!("{action} done")),
            Err(error) => log(&lab, node, &format!("{action} failed: {error}")),
        }
    });
}

struct Request {
    method: String,
    path: String,
    authorization: String,
    token: String,
    origin: String,
    body: Vec<u8>,
}

impl Request {
    /// Reads the next HTTP request of a caller at `origin`. Returns `None` if the caller has closed the connection.
    fn read(from: &mut impl BufRead, origin: &str) -> Result<Option<Self>> {
        let mut line = String::new();
        // Treats an end without TLS's `close_notify` as an end, too.
        if from.read_line(&mut line).unwrap_or(0) == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
        let (method, path, origin) = (method.to_owned(), path.to_owned(), origin.to_owned());
        let (authorization, token, body) = Default::default();
        let mut request = Self { method, path, authorization, token, origin, body };
        let mut length = 0;
        loop {
            let mut header = String::new();
            if from.read_line(&mut header)? == 0 || header.trim().is_empty() {
                break;
            }
            let Some((name, value)) = header.split_once(':') else { continue };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap_or(0),
                "authorization" => value.trim().clone_into(&mut request.authorization),
                "x-auth-token" => value.trim().clone_into(&mut request.token),
                _ => {}
            }
        }
        request.body = vec![0; usize::min(length, BODY_LIMIT)];
        from.read_exact(&mut request.body)?;
        Ok(Some(request))
    }

    fn reset_type(&self) -> Option<String> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        Some(body.get("ResetType")?.as_str()?.to_owned())
    }

    /// Returns the reset type in the request's body and a space, for the log. The text is empty if the body has no reset type.
    fn brief(&self) -> String {
        self.reset_type().map(|kind| format!("{kind} ")).unwrap_or_default()
    }
}

struct Reply {
    status: u16,
    body: Option<Value>,
    action: Option<&'static str>,
    headers: Vec<(&'static str, String)>,
}

impl Reply {
    fn new(status: u16, body: Option<Value>) -> Self {
        Self { status, body, action: None, headers: Vec::new() }
    }

    fn json(body: Value) -> Self {
        Self::new(200, Some(body))
    }

    fn error(status: u16, message: &str) -> Self {
        let body = json!({"error": {"code": "Base.1.0.GeneralError", "message": message}});
        Self::new(status, Some(body))
    }

    fn write(&self, to: &mut impl Write) -> Result<()> {
        let body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        let phrase = match self.status {
            200 => "OK",
            201 => "Created",
            204 => "No Content",
            400 => "Bad Request",
            401 => "Unauthorized",
            405 => "Method Not Allowed",
            409 => "Conflict",
            _ => "Not Found",
        };
        let mut head = format!("HTTP/1.1 {} {phrase}\r\nOData-Version: 4.0\r\n", self.status);
        if self.status == 401 {
            head.push_str("WWW-Authenticate: Basic realm=\"lab\"\r\n");
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.status != 204 {
            head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        to.write_all(format!("{head}\r\n{body}").as_bytes())?;
        Ok(to.flush()?)
    }
}

fn answer(lab: &Lab, node: Node, request: &Request) -> Reply {
    let path = request.path.trim_end_matches('/');
    let root = "/redfish/v1";
    // The standard requires that the service root is readable without a login.
    if path == root && request.method == "GET" {
        return Reply::json(json!({
            "@odata.id": root, "@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot", "Id": "RootService",
            "Name": "Tandem lab BMC", "RedfishVersion": "1.6.0", "Systems": {"@odata.id": "/redfish/v1/Systems"},
            "AccountService": {"@odata.id": "/redfish/v1/AccountService"},
            "SessionService": {"@odata.id": "/redfish/v1/SessionService"},
            "Links": {"Sessions": {"@odata.id": "/redfish/v1/SessionService/Sessions"}},
        }));
    }
    let mode = mode(lab, node);
    let is_known = || {
        sessions::is_login(request, path) || sessions::lets_in(node, request) || accounts::lets_in(lab, node, request)
    };
    if mode == "refuse" || !is_known() {
        return Reply::error(401, "the user name or password is wrong");
    }
    if mode == "echo-refusing" {
        return Reply::error(500, &format!("no {BMC_PASSWORD}, no {}", request.authorization));
    }
    let of_service = || sessions::answer(lab, node, request, path);
    if let Some(reply) = accounts::answer(lab, node, request, path).or_else(of_service) {
        return reply;
    }
    let systems = format!("{root}/Systems");
    let system = format!("{systems}/{}", node.system_id());
    let reset = format!("{system}/Actions/ComputerSystem.Reset");
    match (request.method.as_str(), path) {
        ("GET", p) if p == systems => Reply::json(json!({
            "@odata.id": systems, "Name": "Systems", "Members@odata.count": 1, "Members": [{"@odata.id": system}],
        })),
        ("GET", p) if p == system => Reply::json(describe(lab, node, &mode, [&system, &reset], request)),
        ("POST", p) if p == reset => match request.reset_type() {
            // An iDRAC gives this answer.
            Some(kind) if kind == "ForceOff" && !power::is_on(lab, node) => {
                let message = json!({"MessageId": "IDRAC.2.8.PSU501", "Message": "Server is already powered OFF."});
                let body = json!({"error": {"@Message.ExtendedInfo": [message]}});
                Reply::new(409, Some(body))
            }
            Some(kind) => match RESET_TYPES.iter().find(|known| **known == kind) {
                Some(action) => Reply { action: Some(action), ..Reply::new(204, None) },
                None => Reply::error(400, "this ResetType is not among the allowable values"),
            },
            None => Reply::error(400, "the body has no ResetType"),
        },
        (_, p) if p == systems || p == system || p == reset => Reply::error(405, "this method is not allowed here"),
        _ => Reply::error(404, "there is no such resource"),
    }
}

fn describe(lab: &Lab, node: Node, mode: &str, [system, reset]: [&str; 2], request: &Request) -> Value {
    let is_on = power::is_on(lab, node) && mode != "says-off";
    let mut told = json!({
        "@odata.id": system, "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem",
        "Id": node.system_id(), "Name": node.name(), "HostName": node.name(), "UUID": node.uuid(),
        "SystemType": "Physical", "PowerState": if is_on { "On" } else { "Off" },
        "Actions": {"#ComputerSystem.Reset": {"target": reset, "ResetType@Redfish.AllowableValues": RESET_TYPES}},
    });
    match mode {
        "stranger" => told["UUID"] = STRANGER.into(),
        "echo" => {
            for key in ["UUID", "LastResetTime", "PowerRestorePolicy", "Model"] {
                told[key] = format!("{BMC_PASSWORD} {}", request.authorization).into();
            }
        }
        _ => {}
    }
    told
}

/// Returns the value of an `Authorization` header for the method `Basic`, without that word.
pub fn login(user: &str, password: &str) -> String {
    base64(format!("{user}:{password}").as_bytes())
}

/// Encodes bytes in base64 (RFC 4648), as [`login`] needs it.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            if position <= chunk.len() {
                text.push(char::from(ALPHABET[(bits >> (18 - 6 * position) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}
