//! A fake etcd with scripted answers. Each status question makes its log one entry longer, so the index shows the order of the
//! answers.

use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderValue, Response};
use prost::Message;

use crate::adapters::etcd::client::Endpoint;

/// The member id of the fake etcd itself.
pub(super) const MEMBER: u64 = 1;
/// The id of the other voter, which leads in some tests.
pub(super) const LEADER: u64 = 2;

#[derive(Clone, PartialEq, prost::Message)]
struct Header {
    #[prost(uint64, tag = "1")]
    cluster_id: u64,
    #[prost(uint64, tag = "2")]
    member_id: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(uint64, tag = "4")]
    leader: u64,
    #[prost(uint64, tag = "5")]
    raft_index: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Member {
    #[prost(uint64, tag = "1")]
    id: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MemberList {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    members: Vec<Member>,
}

/// The fake etcd's reaction to a request.
#[derive(Clone, Copy)]
pub(super) enum Reply {
    Answer,
    Error(&'static str),
    Silence,
}

/// The reactions of a fake etcd to the requests of one test.
#[derive(Clone, Copy)]
pub(super) struct Script {
    pub(super) leader: u64,
    pub(super) member_list: Reply,
    pub(super) read: Reply,
}

/// A running fake etcd, which serves in a thread of its own.
pub(super) struct Double {
    pub(super) endpoint: Endpoint,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Double {
    pub(super) fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let log = asked.clone();
        std::thread::spawn(move || listener.incoming().flatten().for_each(|socket| serve(socket, script, &log)));
        Self { endpoint: Endpoint { url: format!("http://{address}"), address }, asked }
    }

    /// Returns the names of the requests that the fake etcd has received, in order.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Serves one connection. The client first opens a plain TCP connection and then another one, so the caller serves one after the other.
fn serve(socket: TcpStream, script: Script, log: &Mutex<Vec<String>>) {
    socket.set_nonblocking(true).unwrap();
    super::runtime().block_on(async {
        let socket = tokio::net::TcpStream::from_std(socket).unwrap();
        let Ok(mut connection) = h2::server::handshake(socket).await else { return };
        // A dropped stream is reset, which the client would take for an answer.
        let mut unanswered = Vec::new();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let question = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            let message = answer(&question, script, log);
            let error = match question.as_str() {
                "MemberList" => script.member_list,
                "Range" => script.read,
                _ => Reply::Answer,
            };
            let trailers = match error {
                Reply::Answer => vec![("grpc-status", "0")],
                Reply::Error(why) => vec![("grpc-status", "14"), ("grpc-message", why)],
                Reply::Silence => {
                    unanswered.push(respond);
                    continue;
                }
            };
            let head = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
            let mut stream = respond.send_response(head, false).unwrap();
            if matches!(error, Reply::Answer) {
                stream.send_data(message, false).unwrap();
            }
            let header = |(name, value): (&str, _)| (name.parse().unwrap(), HeaderValue::from_static(value));
            stream.send_trailers(trailers.into_iter().map(header).collect()).unwrap();
        }
    });
}

/// Logs `question`, and returns the answer as a gRPC frame: a flag that it is not compressed, the length, and the message.
fn answer(question: &str, script: Script, log: &Mutex<Vec<String>>) -> Bytes {
    let mut log = log.lock().unwrap();
    log.push(question.to_owned());
    let times = log.iter().filter(|earlier| *earlier == question).count();
    let header = Some(Header { cluster_id: 9, member_id: MEMBER });
    let message = match question {
        "Status" => Status { header, leader: script.leader, raft_index: u64::try_from(times).unwrap() }.encode_to_vec(),
        "MemberList" => {
            MemberList { header, members: [MEMBER, LEADER].map(|id| Member { id }).to_vec() }.encode_to_vec()
        }
        // An answer without keys.
        _ => Vec::new(),
    };
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    Bytes::from([&[0][..], &length, &message].concat())
}
