//! A BMC that is not ready, or answers the same for ever: how long it is asked, and what its answer is worth then.

use crate::bmc::agent::Call;
use crate::bmc::model::error_body;
use crate::bmc::{Fault, Misbehaviour, Server, World, at_once};

#[test]
fn whatever_asks_for_patience_gets_it() {
    let ilo = error_body("iLO.2.30.ResourceNotReadyRetry", "The resource is not able to perform operations.");
    at_once(
        [
            ("GET", 400, ilo.clone(), None),
            ("GET", 404, ilo.clone(), None),
            ("GET", 503, ilo.clone(), Some("1")),
            ("POST", 400, ilo, None),
            ("POST", 400, String::new(), Some("1")),
            // What the BMC has listed is there.
            ("GET", 404, String::new(), None),
            ("GET", 400, String::new(), None),
        ],
        |(method, status, body, header)| {
            let headers = header.map(|seconds| ("Retry-After", seconds.to_owned())).into_iter().collect();
            let how = Misbehaviour::StatusWith(status, headers, body);
            let path = if method == "GET" { "/Systems/1" } else { "Reset" };
            let server = Server::with_world(World::one_system().with(Fault::always(method, path, how).times(4)));
            Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(4.0, 15.0);
        },
    );
}
