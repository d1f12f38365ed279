//! A headless Chromium, controlled by its DevTools protocol over a pair of pipes, so that it does not listen on the
//! network.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A headless Chromium that shows one page.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: String,
    last_id: u64,
    /// The complaints of the page or the browser.
    pub complaints: Vec<String>,
    /// The URL of every request.
    pub requests: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts the Chromium that `tests/model/sim_page/setup` has installed.
    #[expect(clippy::disallowed_methods, reason = "a test starts the browser that it looks with")]
    pub fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        // It uses descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<&0 4>&1 >/dev/null 2>/dev/null", "sh"])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut browser = Self {
            child,
            to,
            from,
            session: String::new(),
            last_id: 0,
            complaints: Vec::new(),
            requests: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &attach);
        attached["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        for domain in ["Page.enable", "Network.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, &json!({}));
        }
        browser
    }

    /// Calls a method of Chromium's debugging protocol, and returns its result. Events that arrive meanwhile are recorded.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        write!(self.to, "{message}\0").unwrap();
        self.to.flush().unwrap();
        loop {
            let message = self.next();
            if message["id"] == json!(self.last_id) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
        }
    }

    fn next(&mut self) -> Value {
        let mut line = Vec::new();
        self.from.read_until(0, &mut line).unwrap();
        assert!(!line.is_empty(), "the browser has ended; run tests/model/sim_page/setup first");
        let message: Value = serde_json::from_slice(line.strip_suffix(&[0]).unwrap_or(&line)).unwrap();
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => {
                self.complaints.push(params.to_string());
            }
            "Network.requestWillBeSent" => {
                self.requests.push(params["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
        message
    }

    /// Opens a file in the browser, and waits until it is loaded.
    pub fn open(&mut self, file: &Path) {
        self.call("Page.navigate", &json!({ "url": format!("file://{}", file.display()) }));
        while self.next()["method"] != json!("Page.loadEventFired") {}
    }

    /// Sets the size of the emulated screen. With `touch`, the browser emulates a phone.
    pub fn screen(&mut self, width: u32, height: u32, touch: bool) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": touch });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        self.call("Emulation.setTouchEmulationEnabled", &json!({ "enabled": touch }));
    }

    /// Sets the preferred colour scheme, `light` or `dark`.
    pub fn scheme(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Returns the value of a JavaScript expression in the page.
    pub fn ask(&mut self, expression: &str) -> Value {
        let answer = self.call("Runtime.evaluate", &json!({ "expression": expression, "returnByValue": true }));
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    pub fn point_at(&mut self, x: f64, y: f64) {
        self.call("Input.dispatchMouseEvent", &json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    pub fn tap(&mut self, x: f64, y: f64) {
        let finger = json!([{ "x": x, "y": y }]);
        self.call("Input.dispatchTouchEvent", &json!({ "type": "touchStart", "touchPoints": finger }));
        self.call("Input.dispatchTouchEvent", &json!({ "type": "touchEnd", "touchPoints": [] }));
    }

    pub fn press_tab(&mut self) {
        for kind in ["keyDown", "keyUp"] {
            let key = json!({ "type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
            self.call("Input.dispatchKeyEvent", &key);
        }
    }

    /// Writes a screenshot of the page to the file `to`.
    pub fn picture(&mut self, to: &Path) {
        use base64::Engine;
        let data = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        let data = base64::engine::general_purpose::STANDARD.decode(data["data"].as_str().unwrap()).unwrap();
        std::fs::write(to, data).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
