use std::os::unix::fs::symlink;

use nix::sys::stat::SFlag;

use super::*;

/// Creates a directory to which another program writes, and next to it a file of root's.
fn stage() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (theirs, secret) = (dir.path().join("theirs"), dir.path().join("secret"));
    fs::create_dir(&theirs).unwrap();
    fs::write(&secret, "secret").unwrap();
    (dir, theirs, secret)
}

fn words<T>(result: io::Result<T>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn what_is_no_file_beneath_is_named_and_not_opened() {
    let (_dir, path, secret) = stage();
    let theirs = Dir::open(&path).unwrap();
    symlink(&secret, path.join("link")).unwrap();
    symlink(&path, path.join("link-to-directory")).unwrap();
    fs::create_dir(path.join("directory")).unwrap();
    nix::unistd::mkfifo(&path.join("fifo"), Mode::S_IRUSR).unwrap();
    fs::write(path.join("file"), "text").unwrap();
    for (name, what) in [("link", "a link"), ("directory", "a directory"), ("fifo", "a FIFO")] {
        let wanted = format!("it is {what} where a regular file belongs: move it away");
        assert_eq!(words(theirs.file(name)), wanted);
        assert_eq!(words(theirs.file_to_change(name)), wanted);
    }
    for place in ["link/file", "link-to-directory/file", "link-to-directory"] {
        assert!(words(theirs.below(place)).contains("a link where a directory belongs"), "{place}");
    }
    assert!(words(theirs.below("file")).contains("a file where a directory belongs"));
    for place in ["../secret", "..", "/etc/passwd", "directory/../../secret"] {
        assert_eq!(theirs.file(place).unwrap_err().kind(), ErrorKind::InvalidInput, "{place}");
    }
    assert_eq!(theirs.own_text("file", 4).unwrap(), "text");
    assert_eq!(theirs.own_text("file", 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(theirs.file("missing").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(theirs.stat("link").unwrap().st_mode & SFlag::S_IFMT.bits(), SFlag::S_IFLNK.bits());
    assert_eq!(theirs.names().unwrap(), ["directory", "fifo", "file", "link", "link-to-directory"]);
}

/// Asserts that a [`Dir`] stays the directory that was opened, even if another one replaces it at its path.
#[test]
fn a_directory_that_is_replaced_stays_the_one_that_was_opened() {
    let (dir, path, secret) = stage();
    fs::write(path.join("file"), "text").unwrap();
    let theirs = Dir::open(&path).unwrap();
    fs::rename(&path, dir.path().join("moved")).unwrap();
    symlink(dir.path(), &path).unwrap();
    assert_eq!(theirs.own_text("file", 10).unwrap(), "text");
    theirs.replace("secret", b"mine", 0o600).unwrap();
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
    assert_eq!(fs::read_to_string(dir.path().join("moved/secret")).unwrap(), "mine");
}

#[test]
fn whatever_lies_in_its_place_a_file_is_replaced_and_nothing_else_changes() {
    type Plant = fn(&Path, &Path);
    let plants: [Plant; 4] = [
        |at, secret| symlink(secret, at).unwrap(),
        |at, secret| fs::hard_link(secret, at).unwrap(),
        |at, _| nix::unistd::mkfifo(at, Mode::S_IRUSR).unwrap(),
        |at, secret| {
            fs::create_dir(at).unwrap();
            symlink(secret.parent().unwrap(), at.join("link")).unwrap();
        },
    ];
    for plant in plants {
        let (_dir, path, secret) = stage();
        let theirs = Dir::open(&path).unwrap();
        plant(&path.join("file.new"), &secret);
        theirs.replace("file", b"text", 0o600).unwrap();
        assert_eq!(fs::read_to_string(path.join("file")).unwrap(), "text");
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        assert_eq!(theirs.names().unwrap(), ["file"]);
        theirs.remove("file").unwrap();
        theirs.remove("file").unwrap();
    }
}

#[test]
fn a_directory_is_made_beneath_and_over_no_link() {
    let (dir, path, _) = stage();
    let theirs = Dir::open(&path).unwrap();
    assert_eq!(theirs.make_below("one/two").unwrap().path(), path.join("one/two"));
    theirs.make_below("one/two/three").unwrap();
    assert_eq!(theirs.make_below("").unwrap().path(), path);
    symlink(dir.path(), path.join("link")).unwrap();
    assert!(words(theirs.make_below("link/made")).contains("a link where a directory belongs"));
    assert!(!dir.path().join("made").exists());
}
