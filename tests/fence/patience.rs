//! A BMC that is not ready, or repeats the same answer: the time for which it is queried, and the final result.

use serde_json::json;

use crate::bmc::agent::Call;
use crate::bmc::model::error_body;
use crate::bmc::{Fault, Misbehaviour, Server, World, at_once};
use crate::power::{put_into_chassis, resets, world};

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
            // A resource that the BMC has listed must exist.
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

#[test]
fn a_system_that_is_off_and_refuses_every_reset_is_off_unless_its_chassis_is_on() {
    let internal = error_body("Base.1.8.InternalError", "The request failed due to an internal service error.");
    let refusing = |status, chassis| {
        let refused = resets(Misbehaviour::Status(status, internal.clone()));
        let server = Server::with_world(world(|system| system.power = json!("Off")).with(refused));
        put_into_chassis(&server, chassis, &["1"]);
        server
    };
    at_once([(500, "Off"), (503, "Off"), (500, "On")], |(status, chassis)| {
        let server = refusing(status, chassis);
        let output = Call::new(&server, "off").under_fencer().run();
        if chassis == "On" {
            output.fails(&["500", "chassis /redfish/v1/Chassis/1 says On"]);
        } else {
            output.succeeds("Success: Already OFF").within(30.0, 53.0);
        }
    });
}
