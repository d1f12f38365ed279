//! Standard input while the first node's command keeps it open through ssh. It contains the join file, and then an
//! empty line now and again, until that command has ended for any reason.

use std::io::{ErrorKind, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use zeroize::{Zeroize as _, Zeroizing};

use crate::operate::setup::channel::join_file::{self, Join, Unusable};
use crate::os::clock::Deadline;

const PIECE: usize = 16 * 1024;
/// Number of lines in a join file.
const LINES: usize = 3;

/// The last event on standard input. It shows whether the process that writes to standard input still runs.
#[derive(Clone, Copy, Debug)]
enum Heard {
    /// Something has arrived. Until this time the writer counts as running, even if nothing more arrives.
    Until(Deadline),
    End,
}

/// Standard input after the join file was read from it. While it stays open, the command that writes to it still runs.
#[derive(Debug)]
pub(super) struct Input {
    heard: Arc<Mutex<Heard>>,
    silence: Duration,
}

impl Input {
    /// Reads the join file from `reader`. Fails after `silence` without a further piece.
    pub(super) fn read(reader: impl Read + Send + 'static, silence: Duration) -> Result<(Join, Self), Unusable> {
        let heard = Arc::new(Mutex::new(Heard::Until(Deadline::after(silence))));
        let file = follow(reader, heard.clone(), silence);
        let input = Self { heard, silence };
        let unreadable = |why: String| Unusable::Unreadable("standard input".to_owned(), why);
        loop {
            match file.recv_timeout(silence) {
                Ok(Ok(bytes)) => return Ok((join_file::parse(&bytes)?, input)),
                Ok(Err(error)) => return Err(unreadable(error.to_string())),
                Err(RecvTimeoutError::Timeout) => input.still().map_err(unreadable)?,
                Err(RecvTimeoutError::Disconnected) => return Err(unreadable("nobody reads it".to_owned())),
            }
        }
    }

    /// Checks that the writer keeps standard input open and still sends. The error is the reason why not.
    pub(super) fn still(&self) -> Result<(), String> {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match heard {
            Heard::End => Err("standard input ended, and with it whatever waited for this".to_owned()),
            Heard::Until(then) if then.has_passed() => {
                Err(format!("standard input was silent for {} s", self.silence.as_secs()))
            }
            Heard::Until(_) => Ok(()),
        }
    }
}

/// Reads `reader` to its end in a thread. Sends the join file first. Afterwards updates `heard` whenever something arrives.
fn follow(
    mut reader: impl Read + Send + 'static,
    heard: Arc<Mutex<Heard>>,
    silence: Duration,
) -> Receiver<std::io::Result<Zeroizing<Vec<u8>>>> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let note = |what| *heard.lock().unwrap_or_else(PoisonError::into_inner) = what;
        let limit = usize::try_from(join_file::LIMIT).unwrap_or_default();
        let mut file = Some(Zeroizing::new(Vec::with_capacity(limit)));
        let mut piece = Zeroizing::new([0_u8; PIECE]);
        let failed = loop {
            let length = match reader.read(&mut *piece) {
                Ok(0) => break None,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => break Some(error),
            };
            note(Heard::Until(Deadline::after(silence)));
            let Some(read) = file.as_mut() else { continue };
            let room = limit - read.len();
            read.extend_from_slice(&piece[..length.min(room)]);
            piece.zeroize();
            let ends = read.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(LINES - 1).map(|(at, _)| at + 1);
            if let Some(end) = ends.or_else(|| (length >= room).then_some(limit)) {
                read.truncate(end);
                let _ = file.take().map(|file| tell.send(Ok(file)));
            }
        };
        note(Heard::End);
        // An incomplete file is sent, too, because its parser reports the fault.
        let _ = file.map(|file| tell.send(failed.map_or(Ok(file), Err)));
    });
    told
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::operate::setup::file;
    use crate::os::clock;

    const SILENCE: Duration = Duration::from_millis(600);

    fn text() -> (Join, Zeroizing<String>) {
        let described = file::read(file::EXAMPLE).unwrap();
        let (join, _) = join_file::make(&described, 0, false, clock::wall_seconds()).unwrap();
        let text = join.text().unwrap();
        (join, text)
    }

    fn until_it_ends(input: &Input) -> String {
        let until = Deadline::after(Duration::from_secs(10));
        loop {
            match input.still() {
                Err(why) => return why,
                Ok(()) if until.has_passed() => panic!("nothing was noticed"),
                Ok(()) => until.sleep(Duration::from_millis(20)),
            }
        }
    }

    #[test]
    fn the_file_is_there_before_the_end_which_is_noticed() {
        let (join, text) = text();
        let (reader, mut writer) = std::io::pipe().unwrap();
        // The file comes in two pieces, and the first sign of life with the second one.
        let (one, two) = text.as_bytes().split_at(text.len() / 2);
        writer.write_all(one).unwrap();
        writer.write_all(two).unwrap();
        writer.write_all(b"\n\n").unwrap();
        let (read, input) = Input::read(reader, SILENCE).unwrap();
        assert_eq!(read, join);
        for _ in 0..8 {
            clock::sleep(SILENCE / 4);
            writer.write_all(b"\n").unwrap();
        }
        assert_eq!(input.still(), Ok(()), "each line is a sign of life");
        drop(writer);
        assert!(until_it_ends(&input).starts_with("standard input ended"));
    }

    #[test]
    fn who_says_nothing_any_more_is_as_good_as_gone() {
        let (_, text) = text();
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        let (_, input) = Input::read(reader, SILENCE).unwrap();
        assert!(until_it_ends(&input).starts_with("standard input was silent"));
        let (reader, mut held) = std::io::pipe().unwrap();
        held.write_all(&text.as_bytes()[..40]).unwrap();
        assert!(matches!(Input::read(reader, SILENCE), Err(Unusable::Unreadable(..))), "half of it, and nothing more");
    }

    #[test]
    fn what_is_no_whole_file_is_refused() {
        let (_, text) = text();
        let of = |bytes: &[u8]| Input::read(std::io::Cursor::new(bytes.to_vec()), SILENCE).err();
        assert_eq!(of(&text.as_bytes()[..text.len() - 9]), Some(Unusable::Cut));
        assert_eq!(of(b""), Some(Unusable::Foreign));
        let limit = usize::try_from(join_file::LIMIT).unwrap();
        assert_eq!(of(&vec![b'x'; limit * 2]), Some(Unusable::Foreign));
    }
}
