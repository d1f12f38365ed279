//! A real node_exporter, which reads the file as on a monitored machine.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{dashboard, metrics_in, metrics_of, pages, rules_file};

/// A node_exporter that runs. It ends when this is dropped.
struct Exporter {
    child: Child,
    address: String,
}

impl Exporter {
    fn start(directory: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let child = Command::new("prometheus-node-exporter")
            .arg(format!("--web.listen-address={address}"))
            .args(["--collector.disable-defaults", "--collector.textfile", "--collector.cpu"])
            .arg(format!("--collector.textfile.directory={}", directory.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("prometheus-node-exporter: {error}; tests/monitoring/setup installs it"));
        Self { child, address }
    }

    fn ask(&self) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    /// Waits until the exporter serves its metrics, and returns them.
    fn page(&self) -> String {
        let begin = Instant::now();
        loop {
            match self.ask() {
                Ok(page) if !page.is_empty() => return page,
                other => assert!(begin.elapsed() < Duration::from_secs(30), "{other:?}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn node_exporter_serves_the_file_and_every_metric_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let page = pages::full().page();
    tandem::operate::metrics::textfile::write(Some(dir.path()), &page).unwrap();
    let exporter = Exporter::start(dir.path());
    let served = exporter.page();
    assert!(served.contains("node_textfile_scrape_error 0"), "{served}");
    assert!(served.contains("node_textfile_mtime_seconds{file="), "{served}");
    // It prints large numbers in another format, and drops no label and no name.
    let kept = |line: &&str| line.starts_with("tandem_");
    let names = |page: &str| -> BTreeSet<String> {
        page.lines().filter(kept).map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    assert_eq!(names(&served), names(&page));

    let there = metrics_of(&served);
    let rules = fs::read_to_string(rules_file()).unwrap();
    let rules: Vec<&str> = rules.lines().filter(|line| !line.starts_with('#')).collect();
    let mut asked = metrics_in(&rules.join("\n"));
    for (_, expression) in dashboard::expressions() {
        asked.extend(metrics_in(&expression));
    }
    assert!(asked.len() > 25, "{asked:?}");
    let missing: Vec<&String> = asked.iter().filter(|name| !there.contains(*name)).collect();
    assert!(missing.is_empty(), "nobody tells {missing:?}");

    // A replaced file is served with its new contents.
    tandem::operate::metrics::textfile::write(Some(dir.path()), &pages::named("off").page()).unwrap();
    assert!(exporter.page().contains("tandem_node_online{node=\"node2\"} 0"));
}
