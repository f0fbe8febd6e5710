//! Recognizes the format of a file by its first bytes. The name of the file does not matter.

use std::ffi::OsStr;

use crate::error::{CaptureError, ErrorKind};

/// Number of bytes to check, enough for text and for every magic number.
pub(super) const SNIFFED_BYTES: usize = 64;

/// Capture formats that this engine recognizes but cannot read, as (magic number, name).
const KNOWN: &[(&[u8], &str)] = &[
    (b"snoop\0\0\0", "a Sun snoop capture"),
    (b"RTSS", "a capture of Microsoft Network Monitor 1"),
    (b"GMBU", "a capture of Microsoft Network Monitor 2"),
    (b"XCP\0", "a capture of NetXRay or Sniffer (Windows)"),
    (b"TRSNIFF data    \x1a", "a capture of Sniffer (DOS)"),
    (b"TR\0d\0", "a capture of HP-UX nettl"),
    (b"iptrace 1.0", "a capture of AIX iptrace"),
    (b"iptrace 2.0", "a capture of AIX iptrace"),
    (b"ObserverPktBufferVersion=", "a capture of Network Instruments Observer"),
    (b"\x7fver", "a capture of EtherPeek or OmniPeek"),
    (b"\x05VNF", "a capture of Visual Networks"),
    (b"btsnoop\0", "a Bluetooth btsnoop capture"),
    (b"LOGG", "a Vector BLF log"),
    (b"\x42\xd2\x00\x34\x12\x66\x22\x88", "a capture of RADCOM"),
    (b"\x00\x00\x02\x00\x12\x05\x00\x10", "a capture of Tektronix K12"),
    (b"\xaa\xaa\xaa\xaa", "a capture of Accellent 5Views"),
];

/// Compression and archive formats that this engine recognizes but cannot read, as (magic number, name).
const PACKED: &[(&[u8], &str)] = &[
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
    (b"\x1f\x9d", "compress (.Z)"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
    (b"Rar!\x1a\x07", "RAR"),
    (b"LZIP", "lzip"),
];

/// Types of the first record in a `LANalyzer` file: trace header and cyclic trace header.
const LANALYZER_TYPES: [u16; 2] = [0x1001, 0x1007];
const LANALYZER_HEADER_MAX_BYTES: u16 = 1024;

/// The error for a file that is not a capture. The error names the format of the file if the first bytes (`head`) show
/// it.
pub(super) fn refuse(path: &OsStr, head: &[u8]) -> CaptureError {
    if head.is_empty() {
        return CaptureError::new(ErrorKind::NotACapture, path, "is empty");
    }
    if let Some((_, name)) = known(head) {
        return unsupported(path, name);
    }
    if let Some((_, name)) = packed(head) {
        let what = format!("is compressed with {name}, which is not supported; decompress it first");
        return CaptureError::new(ErrorKind::NotACapture, path, what);
    }
    if looks_like_text(head) {
        return CaptureError::new(ErrorKind::NotACapture, path, "is text, not a capture");
    }
    if looks_like_lanalyzer(head) {
        return unsupported(path, "a capture of LANalyzer");
    }
    let first = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    CaptureError::new(ErrorKind::NotACapture, path, format!("is not a capture: it begins with {first}"))
}

/// Whether `head` begins with a known magic number or is text. If not, the formats without a magic number are tried.
pub(super) fn is_recognized(head: &[u8]) -> bool {
    known(head).is_some() || packed(head).is_some() || looks_like_text(head)
}

fn known(head: &[u8]) -> Option<&'static (&'static [u8], &'static str)> {
    KNOWN.iter().find(|(magic, _)| head.starts_with(magic))
}

fn packed(head: &[u8]) -> Option<&'static (&'static [u8], &'static str)> {
    PACKED.iter().find(|(magic, _)| head.starts_with(magic))
}

fn unsupported(path: &OsStr, name: &str) -> CaptureError {
    CaptureError::new(ErrorKind::Unsupported, path, format!("is {name}, which is not read directly"))
}

fn looks_like_lanalyzer(head: &[u8]) -> bool {
    match head {
        [a, b, c, d, ..] => {
            LANALYZER_TYPES.contains(&u16::from_le_bytes([*a, *b]))
                && (1..=LANALYZER_HEADER_MAX_BYTES).contains(&u16::from_le_bytes([*c, *d]))
        }
        _ => false,
    }
}

/// Whether `head` is valid UTF-8 without control characters. The last character of `head` can be incomplete.
fn looks_like_text(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            head.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok()).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && !text.chars().any(|char| char.is_control() && !char.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(head: &[u8]) -> (ErrorKind, String) {
        let error = refuse(OsStr::new("f"), head);
        (error.kind, error.to_string())
    }

    #[test]
    fn an_empty_file_is_said_to_be_empty() {
        assert_eq!(refused(b""), (ErrorKind::NotACapture, "f: is empty".to_owned()));
    }

    #[test]
    fn text_is_distinguished_from_bytes() {
        assert_eq!(refused("# Über\n".as_bytes()), (ErrorKind::NotACapture, "f: is text, not a capture".to_owned()));
        let (kind, what) = refused(&[0, 1, 2, 0xff]);
        assert_eq!(kind, ErrorKind::NotACapture);
        assert_eq!(what, "f: is not a capture: it begins with 00 01 02 ff");
    }

    #[test]
    fn other_capture_formats_are_named() {
        for (head, name) in [
            (&b"snoop\0\0\0\0\0\0\x02"[..], "snoop"),
            (b"GMBU\0\x02", "Network Monitor 2"),
            (b"RTSS", "Network Monitor 1"),
            (b"\x01\x10\x4c\x00", "LANalyzer"),
        ] {
            let (kind, what) = refused(head);
            assert_eq!(kind, ErrorKind::Unsupported, "{what}");
            assert!(what.contains(name), "{what}");
        }
    }

    #[test]
    fn what_is_packed_is_to_be_unpacked() {
        let what = "f: is compressed with bzip2, which is not supported; decompress it first".to_owned();
        assert_eq!(refused(b"BZh91AY"), (ErrorKind::NotACapture, what));
    }
}
