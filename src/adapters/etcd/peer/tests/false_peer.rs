//! A peer port on loopback that behaves as etcd does, except for one fault.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::stream::{self, Message};
use super::super::wire::{Entry, Outgoing, kind};
use super::super::{Place, ProxyStep};
use super::decoders::{framed, implied};
use crate::adapters::etcd::client::Credentials;
use crate::os::clock;

pub(super) const ME: u64 = 0xa;
pub(super) const DEAD: u64 = 0xb;
pub(super) const CLUSTER: u64 = 0xc1;
pub(super) const TERM: u64 = 5;
/// The index of the first entry that the fake leader writes in its term.
const OWN: u64 = 11;
pub(super) const CONTEXT: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// The way in which the fake etcd mishandles a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Refuses,
    Hangs,
    TalksNonsense,
    /// The fake answers as etcd answers a removed member: with an error, and with a body that never ends.
    RefusesWithoutAnEnd,
}

/// The one thing in which the fake etcd differs from a real one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    At(ProxyStep, How),
    OtherCluster,
    OtherTerm,
    /// The fake lists a third voter, in every member list or only from the check before the vote on.
    ThirdVoter {
        at_first: bool,
    },
    DeadIsNoVoter,
    LearnerBeside,
    /// The fake closes the stream with this name after the vote proxy has asked for the term.
    Closes(&'static str),
    LaterLogTerm,
    EarlierVote,
    /// The fake sends a message of this kind, which etcd sends only to a live member.
    Answers(u64),
    /// The fake sends these bytes on the message stream as soon as the stream is open.
    Sends(Vec<u8>),
    /// The fake sends entries that do not follow the previous ones.
    Gap,
    /// The fake's log has an unapplied entry of this kind. If the entry is a member change, it removes the member with this id.
    Tail(u64, u64),
    AnotherVoterInTheEnd,
}

#[derive(Default)]
struct State {
    streams: BTreeMap<String, TcpStream>,
    looks: u32,
    is_removed: bool,
    posted: Vec<Message>,
}

/// A fake etcd on a peer port, which runs until [`Running`] is dropped.
pub(super) struct FalsePeer {
    address: String,
    fault: Fault,
    state: Mutex<State>,
    is_over: AtomicBool,
}

pub(super) struct Running(pub(super) Arc<FalsePeer>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(&self.0.address);
    }
}

impl Running {
    pub(super) fn with(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let peer = Arc::new(FalsePeer { address, fault, state: Mutex::default(), is_over: AtomicBool::new(false) });
        let serving = peer.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if serving.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let peer = serving.clone();
                std::thread::spawn(move || peer.serve(stream));
            }
        });
        Self(peer)
    }

    pub(super) fn place(&self) -> Place {
        let nowhere = || std::path::PathBuf::from("/nonexistent");
        let credentials = Credentials { trusted_ca_file: nowhere(), cert_file: nowhere(), key_file: nowhere() };
        Place { url: format!("http://{}", self.0.address), credentials }
    }

    /// Returns the messages of `kind` that the vote proxy has posted.
    pub(super) fn posted(&self, kind: u64) -> Vec<Message> {
        self.0.state.lock().unwrap().posted.iter().filter(|message| message.kind == kind).cloned().collect()
    }

    pub(super) fn senders(&self) -> Vec<(u64, u64)> {
        self.0.state.lock().unwrap().posted.iter().map(|message| (message.from, message.to)).collect()
    }
}

impl FalsePeer {
    /// Answers the requests of one connection, one after the other.
    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        loop {
            let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
            while line != "\r\n" {
                line.clear();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                if first.is_empty() {
                    first.clone_from(&line);
                }
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let path = first.split(' ').nth(1).unwrap();
            let message = (path == "/raft").then(|| stream::message(&mut &body[..], length as u64, DEAD).unwrap());
            let step = self.step(path, message.as_ref());
            if let Fault::At(at, how) = self.fault
                && step == Some(at)
            {
                return self.fail(stream, how);
            }
            if let Some(name) = path.strip_prefix("/raft/stream/") {
                return self.attach(stream, name.split('/').next().unwrap());
            }
            let answer = match message {
                Some(message) => {
                    self.state.lock().unwrap().posted.push(message.clone());
                    self.hear(&message);
                    "HTTP/1.1 204 No Content\r\n\r\n".to_owned()
                }
                None => self.tell(path),
            };
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    /// Returns the step of the vote proxy to which a request belongs.
    fn step(&self, path: &str, message: Option<&Message>) -> Option<ProxyStep> {
        let state = self.state.lock().unwrap();
        let Some(message) = message else {
            return match path {
                "/members" if state.is_removed => Some(ProxyStep::Check),
                "/members" if state.looks == 0 => Some(ProxyStep::Look),
                "/version" | "/members" => None,
                _ => Some(ProxyStep::Attach),
            };
        };
        match message.kind {
            kind::HEARTBEAT => Some(ProxyStep::Term),
            kind::TIMEOUT_NOW => Some(ProxyStep::Campaign),
            kind::VOTE_ANSWER => Some(ProxyStep::Vote),
            kind::APPEND_ANSWER => Some(ProxyStep::Acknowledge),
            kind::PROPOSAL => Some(ProxyStep::Remove),
            _ => None,
        }
    }

    fn fail(&self, mut stream: TcpStream, how: How) {
        match how {
            How::Refuses => {
                let _ = stream.write_all(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
            }
            How::TalksNonsense => {
                let _ = stream.write_all(&[0, 255, 13, 10, 7, 13, 10, 13, 10, 42]);
            }
            How::Hangs | How::RefusesWithoutAnEnd => {
                if how == How::RefusesWithoutAnEnd {
                    let _ = stream.write_all(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n");
                }
                while !self.is_over.load(Ordering::SeqCst) {
                    clock::sleep(Duration::from_millis(10));
                }
            }
        }
    }

    fn attach(&self, mut stream: TcpStream, name: &str) {
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        self.state.lock().unwrap().streams.insert(name.to_owned(), stream);
        if let ("message", Fault::Sends(bytes)) = (name, &self.fault) {
            self.send(name, bytes);
        }
    }

    fn tell(&self, path: &str) -> String {
        let (cluster, body) = match path {
            "/version" => (CLUSTER, r#"{"etcdserver":"3.5.16","etcdcluster":"3.5.0"}"#.to_owned()),
            "/members" => self.members(),
            other => panic!("{other}"),
        };
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\nX-Etcd-Cluster-ID: {cluster:x}\r\nContent-Length: {length}\r\n\r\n{body}")
    }

    fn members(&self) -> (u64, String) {
        let mut state = self.state.lock().unwrap();
        state.looks += 1;
        let one = |id: u64, more: &str| {
            format!(r#"{{"id":{id},"peerURLs":["http://127.0.0.1:1"],"name":"n{id}","clientURLs":[]{more}}}"#)
        };
        let mut members = vec![one(ME, "")];
        let dead = match &self.fault {
            Fault::DeadIsNoVoter => r#","isLearner":true"#,
            _ => "",
        };
        if !state.is_removed {
            members.push(one(DEAD, dead));
        }
        let third = match &self.fault {
            Fault::LearnerBeside => Some(r#","isLearner":true"#),
            Fault::ThirdVoter { at_first } if *at_first || state.looks > 1 => Some(""),
            Fault::AnotherVoterInTheEnd if state.is_removed => Some(""),
            _ => None,
        };
        members.extend(third.map(|more| one(0xd, more)));
        let cluster = if self.fault == Fault::OtherCluster { CLUSTER + 1 } else { CLUSTER };
        (cluster, format!("[{}]", members.join(",")))
    }

    /// Reacts to a message as etcd's Raft does, apart from the fake's fault.
    fn hear(&self, message: &Message) {
        let term = message.term;
        match message.kind {
            kind::HEARTBEAT => {
                let current = if self.fault == Fault::OtherTerm { TERM + 2 } else { TERM };
                self.say(Outgoing::new(kind::APPEND_ANSWER, current));
                if let Fault::Answers(kind) = self.fault {
                    self.say(Outgoing { index: 10, ..Outgoing::new(kind, TERM) });
                }
                if let Fault::Closes(name) = self.fault {
                    // On a slow machine a second heartbeat finds the stream already closed.
                    if let Some(mut stream) = self.state.lock().unwrap().streams.remove(name) {
                        stream.write_all(b"0\r\n\r\n").unwrap();
                    }
                    // The pause keeps the campaign from ending before.
                    clock::sleep(Duration::from_millis(50));
                }
            }
            kind::TIMEOUT_NOW => {
                let term = if self.fault == Fault::EarlierVote { TERM } else { term + 1 };
                let log_term = if self.fault == Fault::LaterLogTerm { TERM + 1 } else { TERM };
                self.say(Outgoing { log_term, index: OWN - 1, ..Outgoing::new(kind::VOTE, term) });
            }
            kind::VOTE_ANSWER => {
                let index = if self.fault == Fault::Gap { OWN + 3 } else { OWN };
                let entry = Entry { kind: 0, term, index, data: vec![7; 300_000] };
                let commit = if matches!(self.fault, Fault::Tail(..)) { OWN - 2 } else { OWN - 1 };
                let append = Outgoing {
                    log_term: TERM,
                    index: OWN - 1,
                    entries: vec![entry],
                    commit,
                    ..Outgoing::new(kind::APPEND, term)
                };
                let append = Outgoing { from: ME, to: DEAD, ..append };
                self.send("msgapp", &[&[0, 2][..], &framed(&append)].concat());
                self.say(Outgoing { context: Some(CONTEXT.to_vec()), ..Outgoing::new(kind::HEARTBEAT, term) });
            }
            // The leader steps back and sends the missing entries, too.
            kind::APPEND_ANSWER if message.reject => {
                let Fault::Tail(kind, removed) = self.fault else { panic!("{message:?}") };
                let data = Outgoing::removal_of(removed, 1).entries.remove(0).data;
                let own = Entry { kind: 0, term, index: OWN, data: Vec::new() };
                let entries = vec![Entry { kind, term: TERM, index: OWN - 1, data }, own];
                let (index, commit) = (OWN - 2, OWN - 2);
                let append = Outgoing { log_term: TERM, index, entries, commit, ..Outgoing::new(kind::APPEND, term) };
                self.send("msgapp", &[&[2][..], &framed(&Outgoing { from: ME, to: DEAD, ..append })].concat());
            }
            kind::APPEND_ANSWER if message.index == OWN => self.send("msgapp", &implied(&[], OWN)),
            kind::PROPOSAL => self.state.lock().unwrap().is_removed = true,
            _ => {}
        }
    }

    fn say(&self, message: Outgoing) {
        self.send("message", &framed(&Outgoing { from: ME, to: DEAD, ..message }));
    }

    fn send(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap();
        let Some(stream) = state.streams.get_mut(name) else { return };
        let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        let _ = stream.write_all(&chunk);
    }
}
