//! What the firmware reports of this machine.

use std::fs;
use std::path::Path;

const SYSTEM_UUID: &str = "/sys/class/dmi/id/product_uuid";

/// Returns the machine's UUID in lower case; `None` if the firmware reports none.
pub fn system_uuid() -> Option<String> {
    read(Path::new(SYSTEM_UUID))
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_ascii_lowercase()).filter(|uuid| !uuid.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uuid_is_read_in_small_letters() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("uuid");
        fs::write(&path, "7A4E1000-0000-4000-8000-000000000001\n").unwrap();
        assert_eq!(read(&path).as_deref(), Some("7a4e1000-0000-4000-8000-000000000001"));
        fs::write(&path, "\n").unwrap();
        assert_eq!(read(&path), None);
    }
}
