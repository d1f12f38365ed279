//! The service itself, and its socket.

use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::future::{Future, Ready, ready};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::net::{UnixListener, UnixStream};
use tonic::body::Body;
use tonic::codegen::tokio_stream::Stream;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::hub::{Hub, Subscription};
use super::messages::{AllNodes, Empty};
use super::{GET_ALL, STREAM_EVENTS};
use crate::fencing_agent::config::refusal::Refusal;
use crate::os::proc;

/// File mode of the socket. Root and the socket's group may connect.
const MODE: u32 = 0o660;

#[derive(Clone, Debug)]
struct Fencing {
    hub: Hub,
}

impl NamedService for Fencing {
    const NAME: &'static str = "fencing.v1.Fencing";
}

impl Service<http::Request<Body>> for Fencing {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let hub = self.hub.clone();
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            Ok(match path.as_str() {
                GET_ALL => Grpc::new(ProstCodec::<AllNodes, Empty>::default()).unary(GetAll(hub), request).await,
                STREAM_EVENTS => Grpc::new(ProstCodec::default()).server_streaming(StreamEvents(hub), request).await,
                _ => Status::unimplemented("GetAll and StreamEvents are served").into_http(),
            })
        })
    }
}

struct GetAll(Hub);

impl UnaryService<Empty> for GetAll {
    type Response = AllNodes;
    type Future = Ready<Result<Response<AllNodes>, Status>>;

    fn call(&mut self, _: Request<Empty>) -> Self::Future {
        ready(Ok(Response::new(self.0.all())))
    }
}

struct StreamEvents(Hub);

impl ServerStreamingService<Empty> for StreamEvents {
    type Response = super::messages::Event;
    type ResponseStream = Subscription;
    type Future = Ready<Result<Response<Subscription>, Status>>;

    /// Registers the client as a subscriber before the response's headers are sent.
    fn call(&mut self, _: Request<Empty>) -> Self::Future {
        ready(Ok(Response::new(self.0.subscribe())))
    }
}

/// The accepted connections of a Unix socket, as an endless stream.
struct Connections(UnixListener);

impl Stream for Connections {
    type Item = io::Result<UnixStream>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_accept(context).map(|accepted| Some(accepted.map(|(stream, _)| stream)))
    }
}

/// Binds the Unix socket for local clients. Root and `group` may connect.
pub(crate) fn listen(socket: &Path, group: Option<&str>) -> Result<std::os::unix::net::UnixListener, Refusal> {
    let failed = |source: io::Error| Refusal::Socket { socket: socket.to_owned(), source };
    if proc::listens_at(socket) {
        return Err(Refusal::SocketTaken { socket: socket.to_owned() });
    }
    let id = group.map(group_id).transpose()?;
    match fs::remove_file(socket) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let listener = std::os::unix::net::UnixListener::bind(socket).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    // The group is set first, so that only root may connect in between.
    if let Some(id) = id {
        std::os::unix::fs::chown(socket, None, Some(id)).map_err(failed)?;
    }
    fs::set_permissions(socket, Permissions::from_mode(MODE)).map_err(failed)?;
    Ok(listener)
}

fn group_id(name: &str) -> Result<u32, Refusal> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    match nix::unistd::Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        _ => Err(Refusal::NoUserGroup { group: name.to_owned() }),
    }
}

/// Serves gRPC until `end` is ready, and then until all responses are sent. Must be called inside a tokio runtime.
pub(crate) async fn serve(
    listener: std::os::unix::net::UnixListener,
    hub: Hub,
    end: impl Future<Output = ()>,
) -> Result<(), String> {
    let connections = Connections(UnixListener::from_std(listener).map_err(|error| error.to_string())?);
    let server = tonic::transport::Server::builder().add_service(Fencing { hub });
    server.serve_with_incoming_shutdown(connections, end).await.map_err(|error| error.to_string())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
