//! A BMC that does everything wrong, or an impostor: the agent returns the right exit code and one clear sentence, in
//! time.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::io::Write as _;
use std::time::Duration;

use crate::bmc::agent::Call;
use crate::bmc::model::{Access, error_body};
use crate::bmc::{Fault, Listening, Misbehaviour, Server, Setup, World, at_once};

pub(crate) fn listening(listening: Listening) -> Server {
    Server::with(World::one_system(), Setup { listening, ..Setup::default() })
}

fn everywhere(how: Misbehaviour) -> Server {
    Server::with_world(World::one_system().with(Fault::always("GET", "", how)))
}

pub(crate) fn status(server: &Server) -> Call {
    Call::new(server, "status").set("action_timeout", "6")
}

fn all(rows: Vec<Box<dyn FnOnce() + Send>>) {
    at_once(rows, |row| row());
}

#[test]
fn every_status_has_its_sentence() {
    let row = |code: u16, words: &'static [&'static str], least: f64, most: f64| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            let body = error_body("Base.1.8.GeneralError", "The service says why");
            let server = everywhere(Misbehaviour::Status(code, body));
            let output = status(&server).run();
            output.fails(words).fails(&["The service says why"]).within(least, most);
        })
    };
    all(vec![
        row(401, &["unable to log in", "401"], 1.0, 3.0),
        row(403, &["403 Forbidden"], 0.0, 1.5),
        row(404, &["404 Not Found", "is Redfish enabled"], 0.0, 1.5),
        row(409, &["409 Conflict"], 0.0, 1.5),
        row(429, &["Timed out", "429"], 4.0, 7.0),
        row(500, &["Timed out", "500"], 4.0, 7.0),
        row(503, &["Timed out", "503"], 4.0, 7.0),
    ]);
}

#[test]
fn a_bmc_that_dislikes_its_name_is_to_be_reached_by_its_address() {
    let page = "<html><body>Bad Request</body></html>".to_owned();
    let server = everywhere(Misbehaviour::Status(400, page));
    let hint = "ManualDNSEntry";
    status(&server).set("ip", "localhost").run().fails(&["400 Bad Request", "give that as ip", hint]);
    let by_address = status(&server).run();
    assert!(!by_address.fails(&["400 Bad Request"]).stderr.contains(hint), "{by_address:?}");
}

#[test]
fn every_broken_body_has_its_sentence() {
    let row = |body: &'static [u8], words: &'static str| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            let server = everywhere(Misbehaviour::Body(body.to_vec()));
            status(&server).run().fails(&[words]).within(0.0, 9.5);
        })
    };
    all(vec![
        row(b"<html><body>Welcome</body></html>", "the answer is HTML, not JSON"),
        row(b"", "the answer is empty"),
        row(b"{\"Systems\":{\"@odata.id\":\"/redf", "cut off in the middle"),
        row(b"null", "the answer is null instead of a resource"),
        row(b"[]", "the answer is a list instead of a resource"),
        row(b"17", "the answer is a number instead of a resource"),
        row(b"\xff\xfe\x00", "not valid JSON"),
        row(b"{}{}", "not valid JSON"),
        row(b"{}", "names no Systems"),
        row(b"{\"Systems\":7}", "names no Systems"),
        row(b"{\"Systems\":{\"@odata.id\":\"http://127.0.0.1/x\"}}", "not https: refused"),
        row(b"{\"Systems\":{\"@odata.id\":\"https://evil.example/x\"}}", "another host: refused"),
    ]);
    let nested = "[".repeat(200_000);
    let server = everywhere(Misbehaviour::Body(nested.into_bytes()));
    status(&server).run().fails(&["not valid JSON"]);
}

#[test]
fn a_broken_collection_has_its_sentence() {
    let row = |body: &'static str, words: &'static str| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            let how = Misbehaviour::Body(body.as_bytes().to_vec());
            let server = Server::with_world(World::one_system().with(Fault {
                method: "GET",
                path: "/redfish/v1/Systems",
                after: 0,
                count: usize::MAX,
                how,
            }));
            status(&server).run().fails(&[words]).within(0.0, 9.5);
        })
    };
    all(vec![
        row("{}", "has no Members"),
        row("{\"Members\":[]}", "lists no system"),
        row("{\"Members\":{}}", "an object as Members"),
        row("{\"Members\":null}", "null as Members"),
        row("{\"Members\":[{}]}", "member without @odata.id"),
        row("{\"Members\":[{\"@odata.id\":5}]}", "member without @odata.id"),
        row("{\"Members\":[{\"@odata.id\":\"https://evil.example/s\"}]}", "another host: refused"),
        row("{\"Members\":[],\"Members@odata.nextLink\":\"/redfish/v1/Systems\"}", "more than 16 pages"),
    ]);
}

#[test]
fn a_tolerant_reader_where_the_standard_allows_it() {
    for body in [
        &b"\xef\xbb\xbf{\"PowerState\":\"On\"}"[..],
        b"{\"PowerState\":\"Off\",\"PowerState\":\"On\"}",
        b" {\"PowerState\":\"On\"}\n",
        // These texts contain bytes that JSON forbids: an asset tag that was never set, a raw tab, the end of a string
        // in C.
        b"{\"PowerState\":\"On\",\"AssetTag\":\"\xff\xff\xff\"}",
        b"{\"PowerState\":\"On\",\"AssetTag\":\"a\tb\"}",
        b"{\"PowerState\":\"On\"}\0",
    ] {
        let server = Server::with_world(World::one_system().with(Fault::always(
            "GET",
            "/Systems/1",
            Misbehaviour::Body(body.to_vec()),
        )));
        status(&server).run().succeeds("Status: ON");
    }
}

#[test]
fn no_place_in_an_answer_shows_the_password() {
    use serde_json::json;
    const PASSWORD: &str = "s3cret-pass";
    let mut written = Vec::new();
    for between in ["\u{7}", "\u{200b}", "\u{202e}", "\n"] {
        for at in [1, 5, PASSWORD.len() - 1] {
            written.push(format!("{}{between}{}", &PASSWORD[..at], &PASSWORD[at..]));
        }
    }
    written.push(format!("{}{PASSWORD}", "x".repeat(33)));
    let system = |key: &str, word: &str| {
        let mut system = json!({"Id": "1", "PowerState": "On", "Actions": {"#ComputerSystem.Reset": {}}});
        system[key] = json!(word);
        Misbehaviour::Body(system.to_string().into_bytes())
    };
    at_once(written, |word| {
        let hides = |how: Misbehaviour, call: &dyn Fn(&Server) -> Call| {
            let server = Server::with_world(World::one_system().with(Fault::always("GET", "/Systems/1", how)));
            let output = call(&server).run();
            let shown = output.stderr.replace('\n', "");
            assert!(output.code == 1 && !shown.contains("s3cret") && !shown.contains("pass"), "{word:?}: {output:?}");
            assert!(!output.stderr.contains('\u{202e}') && !output.stderr.contains('\u{7}'), "{word:?}: {output:?}");
        };
        let plain: &dyn Fn(&Server) -> Call = &|server| status(server);
        let proven: &dyn Fn(&Server) -> Call =
            &|server| status(server).set("system_uuid", "11111111-2222-3333-4444-555555555555");
        hides(system("PowerState", &word), plain);
        hides(system("UUID", &word), proven);
        hides(system("@odata.id", &word), &|server| status(server).set("plug", "another"));
        for key in ["Id", "Name", "UUID", "SerialNumber"] {
            hides(system(key, &word), &|server| status(server).set("plug", "another"));
        }
        for body in [error_body(&word, "no"), error_body("Base.1.8.X", &word)] {
            hides(Misbehaviour::Status(403, body), plain);
        }
    });
}

#[test]
fn connections_that_fail_have_their_sentence() {
    all(vec![
        Box::new(|| {
            let server = everywhere(Misbehaviour::Reset);
            status(&server).run().fails(&["reset the connection"]).within(0.0, 9.5);
        }),
        Box::new(|| {
            let server = everywhere(Misbehaviour::Close);
            status(&server).run().fails(&["closed the connection"]).within(0.0, 9.5);
        }),
        Box::new(|| {
            let server = everywhere(Misbehaviour::Silence);
            status(&server).run().fails(&["timed out"]).within(4.0, 9.5);
        }),
        Box::new(|| {
            let server = listening(Listening::Silence);
            status(&server).run().fails(&["timed out"]).within(4.0, 9.5);
        }),
        Box::new(|| {
            let server = Server::start();
            let call = status(&server).without("ssl_ca_file").set("ssl_insecure", "1");
            drop(server);
            call.run().fails(&["connection refused"]).within(0.0, 9.5);
        }),
        Box::new(|| {
            let server = Server::start();
            let output = status(&server).set("ip", "no-such-host.invalid").run();
            output.fails(&["cannot be resolved"]).within(0.0, 8.0);
        }),
    ]);
}

#[test]
fn slowness_is_bounded() {
    all(vec![
        Box::new(|| {
            let server = everywhere(Misbehaviour::Drip(Duration::from_millis(200)));
            status(&server).run().fails(&["timed out"]).within(4.0, 9.5);
        }),
        Box::new(|| {
            let server = everywhere(Misbehaviour::EndlessHeader);
            status(&server).run().fails(&["header"]).within(0.0, 9.5);
        }),
        Box::new(|| {
            let server = everywhere(Misbehaviour::EndlessBody);
            let output = status(&server).run();
            output.fails(&["larger than 1024 KiB"]).within(0.0, 9.5);
            assert!(output.peak < 48 * 1024, "{} KiB", output.peak);
        }),
        Box::new(|| {
            let server = everywhere(Misbehaviour::Huge(20 * 1024 * 1024));
            let output = status(&server).run();
            output.fails(&["larger than 1024 KiB"]).within(0.0, 9.5);
            assert!(output.peak < 48 * 1024, "{} KiB", output.peak);
        }),
        // The BMC is slow, but within the limit of each request.
        Box::new(|| {
            let server = everywhere(Misbehaviour::Late(Duration::from_millis(1200)));
            status(&server).run().succeeds("Status: ON").within(3.0, 6.0);
        }),
        Box::new(|| {
            let server = everywhere(Misbehaviour::Late(Duration::from_millis(2500)));
            status(&server).set("shell_timeout", "1").run().fails(&["timed out"]).within(0.0, 9.5);
        }),
    ]);
}

#[test]
fn an_answer_that_is_not_http_or_is_cut_off_fails() {
    let server = everywhere(Misbehaviour::Raw(b"220 mail.example ESMTP\r\n".to_vec()));
    status(&server).run().fails(&["GET"]).within(0.0, 9.5);
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"PowerState\":\"On\"".to_vec();
    let server = everywhere(Misbehaviour::Raw(short));
    status(&server).run().fails(&["GET"]).within(0.0, 9.5);
    let gzip = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8bxx".to_vec();
    let server = everywhere(Misbehaviour::Raw(gzip));
    status(&server).run().fails(&["not valid JSON"]).within(0.0, 9.5);
}

#[test]
fn a_line_that_is_no_header_ends_no_answer() {
    let lines = [
        "Content-Security-Policy: default-src\r\n  self\r\nContent-Length: N\r\n",
        "X-Frame-Options : DENY\r\nContent-Length: N\r\n",
        "Strict-Transport-Security\r\nContent-Length: N\r\n",
        " content-length: N\r\n",
        "\tContent-Length: N\r\n",
        "Server: x\u{1}\r\nContent-Length: N\r\n",
    ];
    at_once(lines, |lines| {
        let body = "{\"PowerState\":\"On\",\"Actions\":{\"#ComputerSystem.Reset\":{}}}";
        let lines = lines.replace('N', &body.len().to_string());
        let answer = format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}");
        let how = Misbehaviour::Raw(answer.into_bytes());
        let server = Server::with_world(World::one_system().with(Fault::always("GET", "/Systems/1", how)));
        status(&server).run().succeeds("Status: ON").within(0.0, 3.0);
    });
    // Endless lines that are no header are limited, too.
    let endless = [&b"HTTP/1.1 200 OK\r\n"[..], " no header\r\n".repeat(100_000).as_bytes()].concat();
    status(&everywhere(Misbehaviour::Raw(endless))).run().fails(&["GET"]).within(0.0, 9.5);
}

#[test]
fn a_body_without_length_and_goodbye_is_read() {
    let body = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{\"PowerState\":\"On\",\"Actions\":{\"#ComputerSystem.Reset\":{}}}";
    let server = Server::with_world(World::one_system().with(Fault::always(
        "GET",
        "/Systems/1",
        Misbehaviour::Raw(body.to_vec()),
    )));
    status(&server).run().succeeds("Status: ON");
}

fn redirect(status: u16, location: &str) -> Misbehaviour {
    Misbehaviour::StatusWith(status, vec![("Location", location.to_owned())], String::new())
}

#[test]
fn redirects_stay_on_the_host() {
    for location in
        ["https://evil.example/redfish/v1", "http://127.0.0.1:80/redfish/v1", "//evil.example/x", "ftp://127.0.0.1/"]
    {
        for status_code in [301, 302, 307, 308] {
            let server = everywhere(redirect(status_code, location));
            status(&server).run().fails(&["refused"]).within(0.0, 1.5);
        }
    }
    let other = Server::start();
    let server = everywhere(redirect(307, &format!("https://localhost:{}/redfish/v1", other.port)));
    status(&server).run().fails(&["another host"]);
    assert_eq!(other.requests().len(), 0, "nothing was sent there");
}

#[test]
fn a_redirect_loop_ends() {
    let server = everywhere(redirect(302, "/redfish/v1/again"));
    status(&server).run().fails(&["more than 3 redirects"]).within(0.0, 1.5);
}

#[test]
fn redirects_on_the_host_are_followed() {
    for status_code in [301, 302, 307, 308] {
        let slash = Fault::once("GET", "/redfish/v1", redirect(status_code, "/redfish/v1/"));
        let server = Server::with_world(World::one_system().with(slash));
        status(&server).run().succeeds("Status: ON");
    }
    // A redirect to another port gets the credentials, because the host is the same.
    let other = Server::start();
    let elsewhere = redirect(308, &format!("https://127.0.0.1:{}/redfish/v1", other.port));
    let server = Server::with_world(World::one_system().with(Fault::once("GET", "/redfish/v1", elsewhere)));
    status(&server).without("ssl_ca_file").set("ssl_insecure", "1").run().succeeds("Status: ON");
    assert_eq!(other.requests(), ["GET /redfish/v1"]);
}

#[test]
fn a_redirected_post_stays_a_post() {
    let target = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset/";
    for status_code in [301, 302, 307, 308] {
        let server =
            Server::with_world(World::one_system().with(Fault::once("POST", "Reset", redirect(status_code, target))));
        Call::new(&server, "off").run().succeeds("Success: Powered OFF");
        assert_eq!(server.posted(), ["ForceOff"]);
    }
    let away = Fault::always("POST", "Reset", redirect(307, "https://evil.example/x"));
    let server = Server::with_world(World::one_system().with(away));
    Call::new(&server, "off").run().fails(&["another host"]).within(0.0, 2.0);
}

#[test]
fn ipv6_is_reached_however_it_is_written() {
    let setup = Setup { address: "::1", ..Setup::default() };
    let server = Server::with(World::one_system(), setup);
    for ip in ["::1", "[::1]", "0:0:0:0:0:0:0:1"] {
        status(&server).set("ip", ip).run().succeeds("Status: ON");
    }
    status(&server).set("ip", &format!("[::1]:{}", server.port)).without("ipport").run().succeeds("Status: ON");
}

#[test]
fn a_proxy_of_the_environment_is_not_asked() {
    let server = Server::start();
    let call = status(&server)
        .env("https_proxy", "http://127.0.0.1:9")
        .env("HTTPS_PROXY", "http://127.0.0.1:9")
        .env("ALL_PROXY", "http://127.0.0.1:9");
    call.run().succeeds("Status: ON");
}

#[test]
fn a_service_that_dislikes_identity_gets_no_such_header() {
    // The first request of each resource gets 406.
    let picky = Fault::once("GET", "/Systems/1", Misbehaviour::Status(406, String::new()));
    let server = Server::with_world(World::one_system().with(picky));
    status(&server).run().succeeds("Status: ON");
    let world = server.world();
    let asked: Vec<_> = world.log.iter().filter(|request| request.path.ends_with("/Systems/1")).collect();
    assert_eq!(asked[0].header("Accept-Encoding"), Some("identity"));
    assert_eq!(asked[1].header("Accept-Encoding"), None);
}

#[test]
fn a_kept_connection_that_died_is_replaced() {
    let server = Server::with_world(World::one_system().with(Fault::once("GET", "/Systems/1", Misbehaviour::Close)));
    status(&server).run().succeeds("Status: ON").within(0.0, 1.0);
    assert_eq!(server.handshakes(), 2);
}

#[test]
fn a_bmc_that_drops_every_kept_connection_is_fenced_like_any_other() {
    at_once([(Access::Basic, None), (Access::Basic, Some("/redfish/v1/Systems/1")), (Access::Session, None)], |row| {
        let (access, systems_uri) = row;
        let server = Server::with_world(World { answers_per_connection: 1, access, ..World::one_system() });
        let call = Call::new(&server, "reboot");
        let call = systems_uri.map_or(call.clone(), |uri| call.set("systems_uri", uri));
        call.run().succeeds("Success: Rebooted").within(1.0, 8.0);
        assert_eq!(server.posted(), ["ForceOff", "On"], "{row:?}");
        assert_eq!(server.world().sessions.len(), 0, "{row:?}");
    });
}

#[test]
fn what_must_not_be_sent_twice_never_meets_a_dead_connection() {
    at_once([(1, "reboot"), (2, "reboot"), (3, "reboot"), (1, "diag"), (2, "diag")], |(answers, action)| {
        let server = Server::with_world(World { answers_per_connection: answers, ..World::one_system() });
        let call = Call::new(&server, action).set("method", "cycle").set("systems_uri", "/redfish/v1/Systems/1");
        let output = call.run();
        assert_eq!(output.code, 0, "{answers} answers per connection: {output:?}");
        output.within(0.0, 10.0);
        assert_eq!(server.posted(), [if action == "diag" { "Nmi" } else { "PowerCycle" }], "{answers}");
    });
}

/// Returns an answer with a system's JSON that is compressed, although the agent asked for plain text.
fn packed(system: &str) -> Misbehaviour {
    let mut body = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    body.write_all(system.as_bytes()).unwrap();
    let body = body.finish().unwrap();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
    Misbehaviour::Raw([head.into_bytes(), body].concat())
}

#[test]
fn a_packed_answer_is_unpacked_and_bounded() {
    let server = everywhere(packed("{\"PowerState\":\"On\",\"Systems\":{\"@odata.id\":\"/s\"}}"));
    status(&server).set("systems_uri", "/s/1").run().succeeds("Status: ON");
    let bomb = format!("{{\"PowerState\":\"On\",\"x\":\"{}\"}}", "a".repeat(64 * 1024 * 1024));
    let server = everywhere(packed(&bomb));
    let output = status(&server).run();
    output.fails(&["cut off in the middle"]).within(0.0, 9.5);
    assert!(output.peak < 48 * 1024, "{} KiB", output.peak);
}

#[test]
fn a_bmc_that_restarts_in_the_middle_is_waited_for() {
    // The BMC is unreachable for three seconds after the reset.
    let away = Fault::always("GET", "/Systems/1", Misbehaviour::Reset).after(1).times(4);
    let server = Server::with_world(World::one_system().with(away));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(2.0, 10.0);
}

#[test]
fn an_unhappy_start_is_forgiven_but_not_for_long() {
    let server = Server::with_world(World::one_system().with(Fault::always("GET", "", Misbehaviour::Reset).times(2)));
    status(&server).run().succeeds("Status: ON").within(0.5, 4.0);
    let server = everywhere(Misbehaviour::Reset);
    Call::new(&server, "off").run().fails(&["reset the connection"]).within(9.0, 20.0);
    assert_eq!(server.posted().len(), 0);
}
