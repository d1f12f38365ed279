//! Tests of server and client over a socket.

use std::time::Duration;

use super::super::client::{Client, Unserved};
use super::super::messages::{Event, EventType, Node};
use super::*;

fn node(name: &str) -> Node {
    Node { name: name.to_owned(), ..Node::default() }
}

fn event(name: &str) -> Event {
    Event { node: Some(node(name)), r#type: EventType::Left.into(), ..Event::default() }
}

/// Runs `test` with a hub, and with the socket of a server that serves this hub. Panics after 20 s.
fn served<T: Future<Output = ()>>(test: impl FnOnce(Hub, std::path::PathBuf) -> T) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let listener = listen(&socket, None).unwrap();
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, MODE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let hub = Hub::default();
    let test = test(hub.clone(), socket);
    let both = async {
        tokio::select! {
            ended = serve(listener, hub, std::future::pending()) => panic!("{ended:?}"),
            () = test => {}
        }
    };
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), both).await }).unwrap();
}

#[test]
fn a_stream_and_then_the_list_miss_nothing() {
    served(|hub, socket| async move {
        hub.publish(vec![node("a"), node("b")], &[event("before")]);
        let mut client = Client::connect(&socket).await.unwrap();
        let mut events = client.events().await.unwrap();
        // Nothing is awaited in between, because the headers arrived after the subscription.
        hub.publish(vec![node("a")], &[event("b")]);
        assert_eq!(client.nodes().await.unwrap(), [node("a")]);
        assert_eq!(events.next().await.unwrap(), event("b"));
        hub.end();
        let why = events.next().await.unwrap_err();
        assert!(matches!(&why, Unserved::Refused { code, .. } if code == "Unavailable"), "{why}");
        let late = Client::connect(&socket).await.unwrap().events().await.unwrap().next().await;
        assert!(matches!(late, Err(Unserved::Refused { code, .. }) if code == "Unavailable"));
    });
}

#[test]
fn a_client_that_does_not_read_is_cut_off_and_others_are_served() {
    served(|hub, socket| async move {
        let mut slow = Client::connect(&socket).await.unwrap().events().await.unwrap();
        let mut good = Client::connect(&socket).await.unwrap().events().await.unwrap();
        // All events are sent at once, so that the server cannot send a part of them in between.
        for count in 0..1_025 {
            hub.publish(Vec::new(), &[event(&count.to_string())]);
            if count % 100 == 0 {
                assert!(!good.next().await.unwrap().node.unwrap().name.is_empty());
            }
        }
        let mut seen = 0;
        let why = loop {
            match slow.next().await {
                Ok(_) => seen += 1,
                Err(why) => break why,
            }
            assert!(seen <= 4_000);
            if seen == 1_000 {
                (0..1_500).for_each(|_| hub.publish(Vec::new(), &[event("more")]));
            }
        };
        assert!(matches!(&why, Unserved::Refused { code, .. } if code == "ResourceExhausted"), "{why}");
        assert!(seen >= 1_024, "{seen}");
    });
}

#[test]
fn another_call_and_another_socket_are_refused() {
    served(|_, socket| async move {
        let why = Client::connect(&socket.with_extension("none")).await.unwrap_err().to_string();
        assert!(why.contains("'systemctl status fencing-agent'"), "{why}");
    });
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let _taken = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(matches!(listen(&socket, None), Err(Refusal::SocketTaken { .. })));
    let why = listen(&dir.path().join("other"), Some("no-such-group")).unwrap_err().to_string();
    assert!(why.contains("'groupadd --system no-such-group'"), "{why}");
}
