//! A client of the interface, for `nodes` and `events`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::messages::{AllNodes, Empty, Event, Node};
use super::{GET_ALL, STREAM_EVENTS};

/// Time limit of connecting and of `GetAll`. A stream of events has none.
const PATIENCE: Duration = Duration::from_secs(5);

/// The reason why the client got no answer from a running agent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unserved {
    #[error("the agent cannot be reached at {socket} ({why}): 'systemctl status fencing-agent'")]
    Unreached { socket: PathBuf, why: String },
    #[error("the agent answered {code}: {message}")]
    Refused { code: String, message: String },
}

fn refused(status: &Status) -> Unserved {
    Unserved::Refused { code: format!("{:?}", status.code()), message: status.message().to_owned() }
}

/// A gRPC connection to a running agent.
#[derive(Debug)]
pub(crate) struct Client {
    grpc: Grpc<Channel>,
}

impl Client {
    /// Connects to the running agent at `socket`. Must be called inside a tokio runtime.
    pub(crate) async fn connect(socket: &Path) -> Result<Self, Unserved> {
        let unreached = |why: String| Unserved::Unreached { socket: socket.to_owned(), why };
        let endpoint =
            Endpoint::try_from(format!("unix://{}", socket.display())).map_err(|why| unreached(why.to_string()))?;
        let connected = endpoint.connect_timeout(PATIENCE).connect().await;
        let why = |error: tonic::transport::Error| {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            unreached(source.unwrap_or_else(|| error.to_string()))
        };
        Ok(Self { grpc: Grpc::new(connected.map_err(why)?) })
    }

    /// Returns the members that are reachable, as the agent's list has them.
    pub(crate) async fn nodes(&mut self) -> Result<Vec<Node>, Unserved> {
        self.ready().await?;
        let codec = ProstCodec::<Empty, AllNodes>::default();
        let mut request = Request::new(Empty {});
        request.set_timeout(PATIENCE);
        let answer = self.grpc.unary(request, PathAndQuery::from_static(GET_ALL), codec).await;
        Ok(answer.map_err(|status| refused(&status))?.into_inner().nodes)
    }

    /// Subscribes to events of the agent. Returns once the server has registered the subscription.
    pub(crate) async fn events(&mut self) -> Result<Events, Unserved> {
        self.ready().await?;
        let codec = ProstCodec::<Empty, Event>::default();
        let path = PathAndQuery::from_static(STREAM_EVENTS);
        let answer = self.grpc.server_streaming(Request::new(Empty {}), path, codec).await;
        Ok(Events { stream: answer.map_err(|status| refused(&status))?.into_inner() })
    }

    async fn ready(&mut self) -> Result<(), Unserved> {
        let ready = self.grpc.ready().await;
        ready.map_err(|error| Unserved::Refused { code: "Unavailable".to_owned(), message: error.to_string() })
    }
}

/// A subscription to the events of a running agent.
#[derive(Debug)]
pub(crate) struct Events {
    stream: Streaming<Event>,
}

impl Events {
    /// Waits for the next event. No event follows an error.
    pub(crate) async fn next(&mut self) -> Result<Event, Unserved> {
        match self.stream.message().await {
            Ok(Some(event)) => Ok(event),
            Ok(None) => Err(refused(&Status::unavailable("the agent ended"))),
            Err(status) => Err(refused(&status)),
        }
    }
}
