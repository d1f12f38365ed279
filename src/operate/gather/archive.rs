//! The archive of `tandem gather`. It appears complete or not at all, and only its owner may read it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

use crate::os::clock;

/// An archive that is written to a temporary file. [`Archive::finish`] renames the file.
pub(crate) struct Archive {
    builder: Builder<GzEncoder<File>>,
    aside: PathBuf,
    path: PathBuf,
    /// The name of the top-level folder inside the archive.
    folder: String,
    is_done: bool,
}

impl Archive {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::from(ErrorKind::IsADirectory))?.to_string_lossy();
        let aside = path.with_file_name(format!("{name}.new"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        let folder = name.trim_end_matches(".gz").trim_end_matches(".tar").trim_end_matches(".tgz").to_owned();
        let builder = Builder::new(GzEncoder::new(file, Compression::default()));
        Ok(Self { builder, aside, path: path.to_owned(), folder, is_done: false })
    }

    pub(crate) fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(clock::wall_seconds());
        self.builder.append_data(&mut header, format!("{}/{name}", self.folder), content)
    }

    /// Completes the archive and renames it to its final path. Returns its size in bytes.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.builder.finish()?;
        self.builder.get_mut().try_finish()?;
        let file = self.builder.get_ref().get_ref();
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        fs::rename(&self.aside, &self.path)?;
        self.is_done = true;
        Ok(bytes)
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = fs::remove_file(&self.aside);
        }
    }
}
