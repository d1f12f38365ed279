use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const ROOT: &str = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n";

fn mounts(more: &str) -> Vec<Mount> {
    proc::parse_mounts(format!("{ROOT}{more}").as_bytes())
}

fn kept(point: &Path) -> DataMount {
    DataMount { mount_point: point.to_owned(), source: "/dev/sdb1".to_owned(), file_system: "xfs".to_owned() }
}

/// Creates a temporary directory. Its path has no symbolic links.
fn scratch() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let real = fs::canonicalize(dir.path()).unwrap();
    (dir, real)
}

#[test]
fn the_file_keeps_its_form() {
    let text = include_str!("../../../tests/data/fixtures/formats/0.1.0/data-mount.json");
    let expected = kept(Path::new("/var/lib/etcd"));
    assert_eq!(serde_json::from_str::<DataMount>(text).unwrap(), expected);
    assert_eq!(serde_json::to_string(&expected).unwrap(), text.trim_end());
}

#[test]
fn a_mount_point_without_its_file_system_is_not_blank() {
    let (_dir, dir) = scratch();
    let (record, data) = (path(&dir, "etcd"), dir.join("data"));
    let on_it = data.join("etcd/member");
    let mounted = mounts(&format!("24 21 8:17 / {} rw - xfs /dev/sdb1 rw\n", data.display()));
    assert_eq!(check(&record, &on_it, &mounts(""), &[]), Ok(()), "no record");
    for point in [data.clone(), data.join("etcd"), on_it.clone()] {
        state_file::write(&record, &kept(&point)).unwrap();
        let missing = check(&record, &on_it, &mounts(""), &[]).unwrap_err().to_string();
        let expected = format!(
            "the file system that held the data (/dev/sdb1, xfs) is not mounted at {}: mount it; only to give up its data, delete {}",
            point.display(),
            record.display()
        );
        assert_eq!(missing, expected);
    }
    state_file::write(&record, &kept(&data)).unwrap();
    assert_eq!(check(&record, &on_it, &mounted, &[]), Ok(()), "it is there, and blank");
    assert_eq!(check(&record, &dir.join("elsewhere/member"), &mounts(""), &[]), Ok(()), "another data dir");
    state_file::write(&record, &kept(Path::new("/"))).unwrap();
    assert_eq!(check(&record, &on_it, &mounts(""), &[]), Ok(()), "the data was on the root's file system");
    fs::write(&record, "{").unwrap();
    let damaged = check(&record, &on_it, &mounted, &[]).unwrap_err();
    assert!(matches!(&damaged, NotBlank::Damaged { .. }), "{damaged}");
    fs::remove_file(&record).unwrap();
    assert_eq!(check(&record, &on_it, &mounts(""), &[]), Ok(()), "the operator deleted it");
}

#[test]
fn a_line_of_fstab_counts_without_a_record() {
    let (_dir, dir) = scratch();
    let record = path(&dir, "etcd");
    let (disk, link) = (dir.join("disk"), dir.join("link"));
    fs::create_dir(&disk).unwrap();
    symlink(&disk, &link).unwrap();
    let on_it = disk.join("etcd/member");
    let mounted = mounts(&format!("24 21 8:17 / {} rw - xfs /dev/sdb1 rw\n", disk.display()));
    let line = |point: &Path, options: &str| {
        fstab::parse(format!("/dev/sda1 / ext4 rw 0 1\nUUID=12 {} xfs {options} 0 2\n", point.display()).as_bytes())
    };
    // The line may contain a link to the place. The table of mounts never does.
    for point in [&disk, &link] {
        let missing = check(&record, &on_it, &mounts(""), &line(point, "nofail")).unwrap_err().to_string();
        let expected =
            format!("/etc/fstab has a file system (UUID=12, xfs) for {}, which is not mounted", point.display());
        assert!(missing.starts_with(&expected), "{missing}");
        assert_eq!(check(&record, &on_it, &mounted, &line(point, "nofail")), Ok(()));
        assert_eq!(check(&record, &on_it, &mounts(""), &line(point, "nofail,noauto")), Ok(()));
    }
    assert_eq!(check(&record, &on_it, &mounts(""), &line(&dir.join("dis"), "rw")), Ok(()), "another place");
    assert_eq!(check(&record, &on_it, &[], &line(&dir.join("dis"), "rw")), Ok(()), "the root never counts");
}

#[test]
fn the_last_mount_of_the_longest_path_holds_a_place() {
    let table = mounts(
        "24 21 8:17 / /var/lib rw - xfs /dev/sdb1 rw\n\
         25 21 8:18 / /var/lib rw - xfs /dev/sdc1 rw\n\
         26 21 8:19 / /var/lib/et rw - xfs /dev/sdd1 rw\n\
         27 21 8:20 / /var rw - xfs /dev/sde1 rw\n",
    );
    let found = holding(&table, Path::new("/var/lib/etcd/member")).unwrap();
    assert_eq!((found.mount_point.as_path(), found.source.as_str()), (Path::new("/var/lib"), "/dev/sdc1"));
    assert_eq!(holding(&table, Path::new("/srv/member")).unwrap().mount_point, Path::new("/"));
    assert_eq!(holding(&[], Path::new("/srv/member")), None);
}

#[test]
fn links_lead_to_the_place_of_the_data() {
    let (_dir, dir) = scratch();
    let disk = dir.join("disk");
    fs::create_dir(&disk).unwrap();
    symlink(&disk, dir.join("etcd")).unwrap();
    assert_eq!(place(&dir.join("etcd")), disk.join("member"));
    assert_eq!(place(&dir.join("nothing/here")), dir.join("nothing/here/member"));
}

#[test]
fn the_record_is_written_when_it_changes() {
    use std::os::unix::fs::MetadataExt as _;
    let (_dir, dir) = scratch();
    let (record, data_dir) = (path(&dir, "etcd"), dir.join("data"));
    keep(&record, &data_dir).unwrap();
    let found = fs::metadata(&record).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let Fact::Known(first) = state_file::read::<DataMount>(&record) else { panic!("it is not there") };
    assert!(data_dir.starts_with(&first.mount_point));
    assert_eq!(check_blank(&record, &data_dir), Ok(()));
    keep(&record, &data_dir).unwrap();
    assert_eq!(fs::metadata(&record).unwrap().ino(), found.ino(), "nothing has changed");
    state_file::write(&record, &kept(&data_dir)).unwrap();
    assert!(matches!(check_blank(&record, &data_dir), Err(NotBlank::Held { .. })));
    keep(&record, &data_dir).unwrap();
    assert_eq!(state_file::read(&record), Fact::Known(first));
}
