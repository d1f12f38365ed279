//! The pages of `tandem-sim run --html` in a real browser, which `tests/model/sim_page/setup` installs. Run the tests with
//! `cargo test --test sim_page`. The pictures are left in `target/sim_page`.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "a test program: a panic is how it fails, nothing is exported")]

mod browser;

use std::fs;
use std::path::{Path, PathBuf};

use browser::Browser;
use tandem::sim::mutant::Mutant;
use tandem::sim::{Bounds, Sim, page, scenario};

/// The scenarios of the tested pages. They have long reasons, faults on both nodes, and blank nodes.
const SCENARIOS: [&str; 4] = [
    "survivor-goes-on-and-the-lost-node-rejoins",
    "left-behind-until-the-peer-returns",
    "two-histories-by-an-operators-word",
    "two-blank-nodes-begin",
];
const PHONE: (u32, u32) = (360, 740);
const DESKTOP: (u32, u32) = (1280, 900);
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// The contrast that normal text needs, by the Web Content Accessibility Guidelines (AA).
const CONTRAST: f64 = 4.5;

/// The JavaScript that scrolls to the first event with a reason. It returns the event's position and the text of the reason.
const FIRST_REASON: &str = "(() => { const e = document.querySelector('.event[tabindex]'); \
    e.scrollIntoView({block: 'center'}); const r = e.querySelector('.what').getBoundingClientRect(); \
    return { x: r.x + 8, y: r.y + r.height / 2, text: e.querySelector('.why').textContent }; })()";
/// The JavaScript that returns the texts of all visible reasons.
const SHOWN: &str = "[...document.querySelectorAll('.why')].filter(e => e.offsetHeight > 0).map(e => e.textContent)";
/// The JavaScript that returns by how much the page exceeds the right edge of the screen, in pixels.
const OVERFLOW: &str = "Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll('.why, td, li')]\
    .filter(e => e.offsetHeight > 0).map(e => e.getBoundingClientRect().right)) - window.innerWidth";
/// The JavaScript that returns the least contrast between a text of the page and its background.
const LEAST_CONTRAST: &str = "(() => { \
    const light = c => { const v = c.match(/[0-9.]+/g).slice(0, 3).map(x => x / 255) \
        .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); \
        return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; }; \
    const back = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; \
        if (!c.startsWith('rgba(0, 0, 0, 0')) return c; } return 'rgb(255, 255, 255)'; }; \
    return Math.min(...[...document.querySelectorAll('h1, p, li, th, td, .what, .word, .role, .why')].map(e => { \
        const [a, b] = [light(getComputedStyle(e).color), light(back(e))].sort((x, y) => y - x); \
        return (a + 0.05) / (b + 0.05); })); })()";

fn pictures() -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/sim_page");
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Writes the page of a scenario of `tests/model/scenarios` to a file, and returns the path.
fn written(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/model/scenarios/{name}.scn"));
    let trace = scenario::parse(&fs::read_to_string(source).unwrap()).unwrap();
    let page = page::page(&mut Sim::new(Bounds::for_scenarios(), Mutant::None), name, &trace);
    let file = pictures().join(format!("{name}.html"));
    fs::write(&file, page).unwrap();
    file
}

/// Asserts that exactly the reason `wanted` is visible, and that nothing exceeds the screen.
fn shows(browser: &mut Browser, how: &str, wanted: &str) {
    assert_eq!(browser.ask(SHOWN), serde_json::json!([wanted]), "{how}");
    assert!(browser.ask(OVERFLOW).as_f64().unwrap() <= 0.0, "{how}: a reason sticks out of the screen");
}

fn first_reason(browser: &mut Browser) -> (f64, f64, String) {
    let found = browser.ask(FIRST_REASON);
    (found["x"].as_f64().unwrap(), found["y"].as_f64().unwrap(), found["text"].as_str().unwrap().to_owned())
}

#[test]
fn pages_show_both_lanes_and_load_nothing() {
    let mut browser = Browser::start();
    browser.screen(DESKTOP.0, DESKTOP.1, false);
    for name in SCENARIOS {
        let file = written(name);
        browser.requests.clear();
        browser.open(&file);
        assert_eq!(browser.requests, [format!("file://{}", file.display())], "{name}");
        assert_eq!(browser.complaints, Vec::<String>::new(), "{name}");
        let heads = browser.ask("[...document.querySelectorAll('th')].map(e => e.textContent.trim())");
        assert_eq!(heads, serde_json::json!(["#", "what happens", "node1", "node2", "acknowledged"]), "{name}");
        let rows = browser.ask("document.querySelectorAll('tr').length - 1").as_u64().unwrap();
        let lanes = browser.ask("document.querySelectorAll('td.lane').length").as_u64().unwrap();
        assert!(rows > 10 && lanes == 2 * rows, "{name}: {rows} rows, {lanes} pieces of lanes");
    }
}

#[test]
fn a_reason_is_shown_to_pointer_keyboard_and_finger() {
    let mut browser = Browser::start();
    let file = written(SCENARIOS[0]);
    browser.screen(DESKTOP.0, DESKTOP.1, false);
    browser.open(&file);
    assert_eq!(browser.ask(SHOWN), serde_json::json!([]), "nobody asked for a reason");
    let (x, y, reason) = first_reason(&mut browser);
    assert!(reason.starts_with("because "), "{reason}");
    browser.point_at(x, y);
    shows(&mut browser, "under the pointer", &reason);
    browser.picture(&pictures().join("desktop-pointer.png"));
    browser.point_at(1.0, 1.0);
    assert_eq!(browser.ask(SHOWN), serde_json::json!([]), "the pointer is elsewhere");
    browser.press_tab();
    shows(&mut browser, "by the keyboard", &reason);
    let outline = browser.ask("getComputedStyle(document.activeElement).outlineStyle");
    assert_eq!(outline, "solid", "who has the focus is to be seen");

    browser.screen(PHONE.0, PHONE.1, true);
    browser.open(&file);
    let (x, y, reason) = first_reason(&mut browser);
    browser.tap(x, y);
    // The browser converts it into the effect of a tap, in its own time.
    let patience = std::time::Instant::now();
    while browser.ask(SHOWN) == serde_json::json!([]) && patience.elapsed() < PATIENCE {
        std::thread::yield_now();
    }
    shows(&mut browser, "under the finger", &reason);
    browser.picture(&pictures().join("phone-tap.png"));
}

#[test]
fn pages_fit_and_can_be_read_in_light_and_dark() {
    let mut browser = Browser::start();
    for name in SCENARIOS {
        let file = written(name);
        for ((width, height), kind) in [(PHONE, "phone"), (DESKTOP, "desktop")] {
            browser.screen(width, height, kind == "phone");
            browser.open(&file);
            assert!(browser.ask(OVERFLOW).as_f64().unwrap() <= 0.0, "{name} is too wide for a {kind}");
            for scheme in ["light", "dark"] {
                browser.scheme(scheme);
                let contrast = browser.ask(LEAST_CONTRAST).as_f64().unwrap();
                assert!(contrast >= CONTRAST, "{name}, {kind}, {scheme}: a contrast of {contrast:.1}");
                browser.picture(&pictures().join(format!("{name}-{kind}-{scheme}.png")));
            }
        }
    }
}
