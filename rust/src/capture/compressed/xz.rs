//! Decompresses xz files with any number of streams and blocks.

use lzma_rust2::{Action, Status, XzStream};

use super::super::source::Fault;
use super::raw::Raw;
use super::step::{MAX_WINDOW_BYTES, Step};
use crate::error::ErrorKind;

/// Memory of the decoder besides its window, in bytes. The decoder's probability tables take less than 64 KiB.
const DECODER_BYTES: u64 = 1 << 20;

/// The compressed length must not exceed 5/4 of the decompressed length by more than this number of bytes. The decoder
/// stores 16 bytes per block until the index at the end of the stream, so a file of many empty blocks would need much
/// memory. A real xz file is hardly longer than its content.
const OVERHEAD_BYTES: u64 = 16 << 20;

/// The xz decoder, built on the crate's push interface, which returns all bytes before a truncation. The crate's
/// `XzReader` returns only whole chunks of up to 2 MiB.
pub(super) struct Xz {
    pub(super) raw: Raw,
    stream: XzStream,
    ended: bool,
}

impl Xz {
    pub(super) fn new(raw: Raw) -> Self {
        let limit_kib = ((MAX_WINDOW_BYTES + DECODER_BYTES) >> 10) as u32;
        Self { raw, stream: XzStream::new_mem_limit(true, limit_kib), ended: false }
    }

    pub(super) fn read(&mut self, out: &mut [u8]) -> Step {
        while !self.ended {
            let input = self.raw.peek(1);
            let action = if input.is_empty() { Action::Finish } else { Action::Run };
            let (in_before, out_before) = (self.stream.total_in(), self.stream.total_out());
            let result = self.stream.process(input, out, action);
            let made = (self.stream.total_out() - out_before) as usize;
            match result {
                Ok(step) => {
                    self.raw.consume(step.bytes_consumed);
                    self.ended = step.status == Status::StreamEnd;
                    let bytes = step.bytes_produced;
                    let stuck = bytes == 0 && step.bytes_consumed == 0 && !self.ended;
                    if stuck || self.is_hollow() {
                        return Step { bytes, fault: Some(self.raw.fault("xz", "blocks without content")) };
                    }
                    if bytes > 0 {
                        return Step::bytes(bytes);
                    }
                }
                Err(error) => {
                    self.raw.consume((self.stream.total_in() - in_before) as usize);
                    return Step { bytes: made, fault: Some(self.fault(&error)) };
                }
            }
        }
        Step { bytes: 0, fault: self.raw.end_fault() }
    }

    fn is_hollow(&self) -> bool {
        let out = self.stream.total_out();
        self.stream.total_in() > OVERHEAD_BYTES.saturating_add(out).saturating_add(out / 4)
    }

    fn fault(&self, error: &std::io::Error) -> Fault {
        if error.kind() == std::io::ErrorKind::OutOfMemory {
            let what = format!("the xz data need a window of more than {MAX_WINDOW_BYTES} bytes");
            return Fault::new(ErrorKind::Unsupported, what);
        }
        self.raw.fault("xz", &error.to_string())
    }
}
