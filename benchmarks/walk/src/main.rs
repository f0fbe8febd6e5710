//! The bare walk: maps a little-endian pcap file, steps from record header to record header, adds up the captured
//! lengths and reads one byte of each frame (its last, so that every frame's memory is touched). A reader that does
//! less than this does not read the packets; the engine's promise is a multiple of this time.

use std::fs::File;
use std::hint::black_box;
use std::process::ExitCode;

use memmap2::Mmap;

const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// Magic numbers of little-endian captures in µs and in ns.
const MAGICS: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];

struct Walked {
    packets: u64,
    captured_bytes: u64,
    byte_sum: u64,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

fn walk(bytes: &[u8]) -> Option<Walked> {
    if !MAGICS.contains(&word(bytes, 0)?) {
        return None;
    }
    let mut walked = Walked { packets: 0, captured_bytes: 0, byte_sum: 0 };
    let mut at = FILE_HEADER_BYTES;
    while let Some(captured) = word(bytes, at + 8) {
        let end = at + RECORD_HEADER_BYTES + captured as usize;
        let Some(&last) = bytes.get(end - 1) else { break };
        walked.packets += 1;
        walked.captured_bytes += u64::from(captured);
        walked.byte_sum += u64::from(last);
        at = end;
    }
    Some(walked)
}

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: walk CAPTURE.pcap");
        return ExitCode::from(2);
    };
    // SAFETY: the file is not changed while this short program maps it; the benchmark owns it.
    let mapped = File::open(&path).and_then(|file| unsafe { Mmap::map(&file) });
    let bytes = match mapped {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::from(3);
        }
    };
    let Some(walked) = walk(&bytes) else {
        eprintln!("{path}: not a little-endian pcap file");
        return ExitCode::from(3);
    };
    println!("{} packets, {} bytes captured, byte sum {}", walked.packets, walked.captured_bytes, black_box(walked.byte_sum));
    ExitCode::SUCCESS
}
