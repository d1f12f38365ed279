//! The small runner in `shellspec/` fails if ShellSpec would, and refuses what it does not understand, because an
//! ignored directive would be an untested promise.

#![expect(clippy::disallowed_methods, reason = "the test starts the runner as a user would")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs `shellspec/run` on a file with `text`. Returns its exit code and output.
fn run(text: &str) -> (Option<i32>, String) {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("one_spec.sh");
    fs::write(&file, text).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(root.join("shellspec/run"))
        .arg(&file)
        .env("TANDEM_BIN", env!("CARGO_BIN_EXE_tandem"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), said)
}

/// Returns a file of shellspec with one example that consists of these lines.
fn example(lines: &str) -> String {
    format!("Describe 'it'\n  says() {{ echo hello; return 3; }}\n  It 'works'\n    {lines}\n  End\nEnd\n")
}

const RIGHT: &str = "When run says\n    The status should equal 3\n    The output should start with 'hel'";

#[test]
fn what_is_as_expected_passes() {
    let (code, said) = run(&example(RIGHT));
    assert_eq!((code, said.contains("1 passed, 0 failed, 0 skipped")), (Some(0), true), "{said}");
}

#[test]
fn what_is_not_as_expected_fails() {
    for (lines, words) in [
        (
            "When run says\n The status should equal 0\n The output should equal hello",
            "status should equal '0', and is: 3",
        ),
        ("When run says\n The status should equal 3\n The output should not include ell", "output should not include"),
        ("When run says\n The status should equal 3", "output was not expected: hello"),
        ("When run says\n The output should equal hello", "status was not expected: 3"),
        (
            "When run says\n The output should equal hello\n The status should equal 3\n The error should equal x",
            "error",
        ),
        ("true", "nothing was run"),
        ("When run true", "nothing was expected"),
    ] {
        let (code, said) = run(&example(lines));
        assert_eq!(code, Some(1), "{lines}: {said}");
        assert!(said.contains(words) && said.contains("0 passed, 1 failed"), "{lines}: {said}");
    }
}

#[test]
fn what_is_not_understood_is_refused() {
    let inside = [
        "When call says",
        "When run script /bin/true",
        "When run source /bin/true",
        "When run says\n When run says",
        "The status should equal 3",
        "Skip if 'no reason' true",
        "Pending 'later'",
        "Data 'input'",
        "It 'is another'",
    ];
    let expectations = [
        "The line 1 of output should equal hello",
        "The output shold equal hello",
        "The output should match pattern 'h*'",
        "The output should not end with 'x'",
        "The output should start 'hel'",
        "The output should include hello world",
        "The output should be blank",
        "The stdout should equal hello",
        "Assert true",
    ];
    let mut texts: Vec<String> = inside.iter().map(|lines| example(lines)).collect();
    texts.extend(expectations.iter().map(|line| example(&format!("{RIGHT}\n    {line}"))));
    let whole = example(RIGHT);
    for before in
        ["Include other.sh", "Before 'setup'", "Skip 'for now'", "Todo 'more'", "%const NAME: value", "When run true"]
    {
        texts.push(format!("{before}\n{whole}"));
    }
    texts.push(format!("{whole}End\n"));
    texts.push(whole.trim_end().trim_end_matches("End").to_owned());
    for text in texts {
        let (code, said) = run(&text);
        assert_eq!(code, Some(2), "{text}\n{said}");
        assert!(said.contains("one_spec.sh: "), "{text}\n{said}");
    }
}
