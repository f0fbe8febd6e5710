//! Decompresses a file for another program, which reads formats that this engine cannot read.

use std::ffi::OsStr;
use std::io::Write;

use super::blocks::{BLOCK_BYTES, Blocks, Input};
use super::compressed::Codec;
use super::reader::{MAGIC_BYTES, decompressed, open_source};
use crate::error::{CaptureError, ErrorKind};

/// Decompresses one file. Memory and compression ratio have the same limits as for captures.
pub struct Unpacker {
    blocks: Blocks,
}

impl Unpacker {
    /// Opens a compressed file.
    ///
    /// # Errors
    /// `Io` if the file cannot be opened, `NotACapture` if its compression is unknown.
    pub fn open(path: &OsStr) -> Result<Self, CaptureError> {
        let source = open_source(path).map_err(|error| CaptureError::io(path, &error))?;
        let mut blocks = Blocks::new(Input::Plain(Box::new(source)), BLOCK_BYTES);
        blocks.fill_to(MAGIC_BYTES);
        let Some(codec) = Codec::detect(blocks.available()) else {
            return Err(CaptureError::new(ErrorKind::NotACapture, path, "is not compressed"));
        };
        Ok(Self { blocks: decompressed(blocks, codec, BLOCK_BYTES) })
    }

    /// Writes the next bytes to `sink`. Returns the number of written bytes, which is 0 at the end of the file.
    ///
    /// # Errors
    /// Writing to `sink` failed.
    pub fn write_some(&mut self, sink: &mut impl Write) -> std::io::Result<usize> {
        self.blocks.fill_to(1);
        let ready = self.blocks.available();
        sink.write_all(ready)?;
        let count = ready.len();
        self.blocks.consume(count);
        Ok(count)
    }

    /// The fault that ended the file early, or `None` if there is no fault, or if the end is not reached yet.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.blocks.fault().map(|fault| fault.what.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(name: &str, bytes: &[u8]) -> Result<(Vec<u8>, Option<String>), ErrorKind> {
        let path = std::env::temp_dir().join(format!("tcptrace-lab-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let opened = Unpacker::open(path.as_os_str());
        std::fs::remove_file(&path).unwrap();
        let (mut unpacker, mut out) = (opened.map_err(|error| error.kind)?, Vec::new());
        while unpacker.write_some(&mut out).unwrap() > 0 {}
        Ok((out, unpacker.fault().map(str::to_owned)))
    }

    /// The bytes "abc" compressed by gzip, without file name and time (RFC 1952, 2.3).
    const ABC: [u8; 23] =
        [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x4c, 0x4a, 0x06, 0x00, 0xc2, 0x41, 0x24, 0x35, 0x03, 0, 0, 0];

    #[test]
    fn a_whole_file_is_unpacked() {
        assert_eq!(unpacked("whole", &ABC), Ok((b"abc".to_vec(), None)));
    }

    #[test]
    fn a_cut_file_gives_what_it_holds_and_says_so() {
        assert_eq!(unpacked("cut", &ABC[..18]), Ok((b"abc".to_vec(), Some("the gzip data end too early".to_owned()))));
    }

    #[test]
    fn a_wrong_checksum_is_named_with_its_place() {
        let mut damaged = ABC;
        damaged[16] ^= 1;
        let what = "the gzip data are damaged before byte 19 of the compressed file (wrong checksum: what was read may be wrong)";
        assert_eq!(unpacked("damaged", &damaged), Ok((b"abc".to_vec(), Some(what.to_owned()))));
    }

    #[test]
    fn what_is_not_compressed_is_refused() {
        assert_eq!(unpacked("plain", b"abc").unwrap_err(), ErrorKind::NotACapture);
    }
}
