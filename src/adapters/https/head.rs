//! A filter for the head of an HTTP answer, which removes lines that are no headers.
//!
//! Some BMCs send header lines that begin with a blank, or have no colon. The client refuses such an answer as a whole, while
//! curl and Python ignore the line. The filter is between TLS and the client, and does not change bodies.

/// The length in bytes from which the filter passes a line or a head unchanged. The HTTP client refuses such a long line or head with its
/// own error text.
const LIMIT: usize = 64 * 1024;
/// The headers that define the end of a body. The filter keeps them even if a blank precedes them.
const FRAMING: [&[u8]; 2] = [b"content-length", b"transfer-encoding"];

/// The part of an HTTP answer that the filter expects next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    BeforeStatus,
    Header {
        /// True if the answer has a 1xx status. Such an answer has no body, and another answer follows.
        interim: bool,
    },
    Body,
}

/// A filter that removes invalid header lines from the HTTP answers of one connection.
#[derive(Debug, Default)]
pub(super) struct HeadFilter {
    part: Part,
    /// The received part of a line that is not complete.
    line: Vec<u8>,
    /// The number of bytes of the present answer's head that have arrived.
    seen: usize,
}

impl HeadFilter {
    /// Resets the filter for the head of the next answer. Called once a request was sent.
    pub(super) fn expect(&mut self) {
        *self = Self::default();
    }

    /// Returns whether the next bytes belong to a body. The filter does not change a body.
    pub(super) fn is_through(&self) -> bool {
        self.part == Part::Body && self.line.is_empty()
    }

    /// Returns the number of bytes of the incomplete line that the filter has not passed on.
    pub(super) fn waiting(&self) -> usize {
        self.line.len()
    }

    /// Filters `input`, and returns the bytes for the HTTP client. They include a line that has become complete.
    pub(super) fn pass(&mut self, input: &[u8]) -> Vec<u8> {
        let mut passed = Vec::with_capacity(self.line.len() + input.len());
        let mut rest = input;
        while self.part != Part::Body && !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let (line, behind) = rest.split_at(end.unwrap_or(rest.len()));
            self.line.extend_from_slice(line);
            self.seen += line.len();
            rest = behind;
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                self.take(&line, &mut passed);
            } else if self.seen > LIMIT {
                passed.append(&mut self.rest());
            }
        }
        passed.extend_from_slice(rest);
        passed
    }

    /// Returns the incomplete last line, because the connection has ended or the head is too long.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        self.part = Part::Body;
        std::mem::take(&mut self.line)
    }

    fn take(&mut self, line: &[u8], passed: &mut Vec<u8>) {
        let is_empty = line.trim_ascii().is_empty() && !line.starts_with(b" ") && !line.starts_with(b"\t");
        match self.part {
            Part::BeforeStatus if is_empty => passed.extend_from_slice(line),
            Part::BeforeStatus => {
                let code = line.strip_prefix(b"HTTP/").and_then(|rest| rest.split(|byte| *byte == b' ').nth(1));
                self.part = match code {
                    Some(code) => Part::Header { interim: code.first() == Some(&b'1') },
                    None => Part::Body,
                };
                passed.extend_from_slice(line);
            }
            Part::Header { interim } if is_empty => {
                self.part = if interim { Part::BeforeStatus } else { Part::Body };
                passed.extend_from_slice(line);
            }
            Part::Header { .. } if self.seen > LIMIT => {
                self.part = Part::Body;
                passed.extend_from_slice(line);
            }
            Part::Header { .. } => add_header(line, passed),
            Part::Body => passed.extend_from_slice(line),
        }
    }
}

/// Appends `line` to `passed` if it is a valid header line.
fn add_header(line: &[u8], passed: &mut Vec<u8>) {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return };
    let (name, value) = line.split_at(colon);
    let name = name.trim_ascii_end();
    let bare = name.trim_ascii_start();
    let is_folded = bare.len() < name.len();
    let has_name = !bare.is_empty() && bare.iter().all(|byte| is_token(*byte));
    let has_value = value.trim_ascii_end().iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
    if has_name && has_value && (!is_folded || FRAMING.iter().any(|framing| framing.eq_ignore_ascii_case(bare))) {
        passed.extend_from_slice(bare);
        passed.extend_from_slice(value);
    }
}

/// Returns whether the name of a header may contain `byte` (RFC 9110, token).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes `answer` through the filter in pieces of `size` bytes.
    fn passed(answer: &[u8], size: usize) -> String {
        let mut filter = HeadFilter::default();
        let mut out: Vec<u8> = answer.chunks(size).flat_map(|piece| filter.pass(piece)).collect();
        out.extend(filter.rest());
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_line_that_is_no_header_is_left_out() {
        for (lines, kept) in [
            ("A: b\r\n folded\r\nC: d\r\n", "A: b\r\nC: d\r\n"),
            ("A: b\r\n\tc: folded\r\nC: d\r\n", "A: b\r\nC: d\r\n"),
            ("X-Frame-Options : DENY\r\n", "X-Frame-Options: DENY\r\n"),
            ("Strict-Transport-Security\r\n", ""),
            (": nothing\r\n", ""),
            ("a b: c\r\n", ""),
            ("A: b\u{1}c\r\n", ""),
            ("A: b\tc\r\n", "A: b\tc\r\n"),
            (" content-length: 5\r\n", "content-length: 5\r\n"),
            ("\tTransfer-Encoding : chunked\n", "Transfer-Encoding: chunked\n"),
            ("A: b\nContent-Length: 5\n", "A: b\nContent-Length: 5\n"),
        ] {
            for size in [1, 2, 3, 1000] {
                let answer = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n no: header\r\n\r\nx");
                assert_eq!(passed(answer(lines).as_bytes(), size), answer(kept), "{lines:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn an_answer_that_is_in_order_or_none_at_all_passes_as_it_is() {
        for answer in [
            &b"HTTP/1.1 200 OK\r\nServer: x \xb5\r\nContent-Length: 2\r\n\r\n{}"[..],
            b"\r\nHTTP/1.1 200\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\n b\r\n",
            b"220 mail.example ESMTP\r\n no\r\n",
            b"HTTP/1.1 200 OK\r\nA: b",
            b"",
        ] {
            for size in [1, 7, 1000] {
                assert_eq!(passed(answer, size), String::from_utf8_lossy(answer));
            }
        }
        let interim = b"HTTP/1.1 100 Continue\r\n no\r\n\r\nHTTP/1.1 200 OK\r\n no\r\n\r\n b\r\n";
        assert_eq!(passed(interim, 5), "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n b\r\n");
    }

    #[test]
    fn the_head_of_each_answer_of_a_connection_is_filtered_and_none_without_end_is_kept() {
        let mut filter = HeadFilter::default();
        for _ in 0..2 {
            filter.expect();
            assert_eq!(filter.pass(b"HTTP/1.1 200 OK\r\n no\r\nA: b\r\n\r\n"), b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
            assert!(filter.is_through());
        }
        let endless = |line: &str| {
            let mut filter = HeadFilter::default();
            let mut out = filter.pass(b"HTTP/1.1 200 OK\r\n").len();
            for _ in 0..2 * LIMIT / line.len() {
                out += filter.pass(line.as_bytes()).len();
                assert!(filter.waiting() <= LIMIT + line.len());
            }
            out
        };
        assert!(endless("no end") > LIMIT && endless(" no header\r\n") > LIMIT / 2);
    }
}
