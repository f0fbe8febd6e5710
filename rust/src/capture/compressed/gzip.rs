//! Decompresses gzip files (RFC 1952) with any number of members.

use flate2::{Decompress, DecompressError, FlushDecompress, Status};

use super::super::source::Fault;
use super::raw::{Raw, WRONG_CHECKSUM};
use super::step::Step;

/// Exponent of the largest Deflate window: 2^15 bytes (RFC 1951, 2).
const WINDOW_BITS: u8 = 15;

/// The fault for data that no compressor writes.
const CONTRADICTORY: &str = "they contradict themselves";

enum Place {
    /// Before a member's header, or at the end of the stream.
    Between,
    Inside,
    End,
}

/// The gzip decoder, built on `Decompress` of the crate flate2. flate2's `MultiGzDecoder` would drop bytes that were
/// decoded in the same call as a damaged part. `MultiGzDecoder` also rejects any bytes after the last member.
pub(super) struct Gzip {
    pub(super) raw: Raw,
    inflate: Decompress,
    place: Place,
    trailing: bool,
}

impl Gzip {
    pub(super) fn new(raw: Raw) -> Self {
        Self { raw, inflate: Decompress::new_gzip(WINDOW_BITS), place: Place::Between, trailing: false }
    }

    pub(super) fn read(&mut self, out: &mut [u8]) -> Step {
        loop {
            match self.place {
                Place::End => return Step { bytes: 0, fault: self.raw.end_fault() },
                Place::Between => self.next_member(),
                Place::Inside => {
                    if let Some(step) = self.inflate(out) {
                        return step;
                    }
                }
            }
        }
    }

    /// Looks for another member. As in the gzip program, bytes after the last member are ignored. A fault reports such
    /// bytes, unless all of them are zeros (tape padding).
    fn next_member(&mut self) {
        match self.raw.peek(2) {
            [0x1f, 0x8b, ..] => {
                self.inflate = Decompress::new_gzip(WINDOW_BITS);
                self.place = Place::Inside;
            }
            [0, ..] => self.raw.consume(1),
            rest => {
                self.trailing = !rest.is_empty();
                self.place = Place::End;
            }
        }
    }

    fn inflate(&mut self, out: &mut [u8]) -> Option<Step> {
        let input = self.raw.peek(1);
        if input.is_empty() {
            return Some(Step::fault(self.raw.fault("gzip", "")));
        }
        let (in_before, out_before) = (self.inflate.total_in(), self.inflate.total_out());
        let result = self.inflate.decompress(input, out, FlushDecompress::None);
        let used = (self.inflate.total_in() - in_before) as usize;
        let made = (self.inflate.total_out() - out_before) as usize;
        self.raw.consume(used);
        match result {
            Ok(Status::StreamEnd) => self.place = Place::Between,
            Ok(_) if used == 0 && made == 0 => return Some(Step::fault(self.raw.fault("gzip", CONTRADICTORY))),
            Ok(_) => {}
            Err(error) => return Some(Step { bytes: made, fault: Some(self.raw.fault("gzip", why(&error))) }),
        }
        (made > 0).then(|| Step::bytes(made))
    }

    /// The fault for bytes after the last member, if there are any.
    pub(super) fn trailing_fault(&mut self) -> Option<Fault> {
        std::mem::take(&mut self.trailing).then(|| self.raw.fault("gzip", "no gzip data follow it"))
    }

    pub(super) fn remark(&self) -> Option<&'static str> {
        self.trailing.then_some("the bytes after the end of the gzip data are not gzip: ignored")
    }
}

/// The fault text for an error of flate2. The messages "incorrect data check" and "incorrect length check" mean that
/// the checksum or the length at the end of a member is wrong.
fn why(error: &DecompressError) -> &'static str {
    if error.message().is_some_and(|text| text.ends_with("check")) { WRONG_CHECKSUM } else { CONTRADICTORY }
}
