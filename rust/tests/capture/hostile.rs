//! Captures that are truncated at every byte, and captures with changed bytes, return the complete frames, then one
//! clear error, and never panic.

use std::sync::LazyLock;

use proptest::prelude::*;
use tcptrace_lab_core::error::ErrorKind;

use crate::compressed::PACKERS;
use crate::support::*;

/// A file, and the offsets at which its records end.
struct Sample {
    bytes: Vec<u8>,
    /// Minimum length at which the truncated file is still recognized.
    known_from: usize,
    /// Pairs of an offset after a record and the number of frames up to it.
    ends: Vec<(usize, usize)>,
}

impl Sample {
    fn new(header: Vec<u8>) -> Self {
        let ends = vec![(header.len(), 0)];
        Self { bytes: header, known_from: 4, ends }
    }

    fn add(&mut self, record: &[u8], frames: usize) {
        self.bytes.extend(record);
        let before = self.ends.last().unwrap().1;
        self.ends.push((self.bytes.len(), before + frames));
    }
}

fn pcap_sample(order: Order, magic: u32) -> Sample {
    let mut sample = Sample::new(pcap_header(order, magic, 96, ETHERNET));
    for (second, bytes) in [60, 0, 1, 96, 33].into_iter().enumerate() {
        sample.add(&pcap_record(order, second as u32, 5, &vec![second as u8; bytes], 1500), 1);
    }
    sample
}

fn pcapng_sample() -> Sample {
    let (little, big) = (Order::Little, Order::Big);
    let mut sample = Sample::new(section(little));
    let resolution = [option(little, 9, &[9]), option(little, 0, b"")];
    sample.add(&interface(little, 1, 96, &resolution), 0);
    sample.add(&enhanced(little, 0, 1 << 40, b"0123456789", 1500, &[option(little, 4, &little.u64(3))]), 1);
    sample.add(&block(little, 4, b"names"), 0);
    sample.add(&simple(little, b"abc", 3), 1);
    sample.add(&block(little, 0x0BAD, b"custom block"), 1);
    sample.add(&block(little, 2, &[little.words(&[0, 0, 9, 2, 60]), b"ab".to_vec()].concat()), 1);
    sample.add(&block(little, 5, &[little.words(&[0, 0, 0]), option(little, 5, &little.u64(9))].concat()), 0);
    sample.add(&section(big), 0);
    sample.add(&interface(big, 101, 0, &[]), 0);
    sample.add(&enhanced(big, 0, 77, &[9; 41], 41, &[]), 1);
    sample
}

/// An ERF file has no header, so its first record identifies it.
fn erf_sample() -> Sample {
    let record = |kind, extensions: &[[u8; 8]], bytes| {
        let erf = Erf { extensions: extensions.to_vec(), fraction: 1 << 30, ..Erf::of(kind) };
        erf_record(&erf, &vec![0x45; bytes], 1500)
    };
    let first = record(22, &[], 40);
    let mut sample = Sample { known_from: first.len(), ends: vec![(first.len(), 1)], bytes: first };
    sample.add(&record(2, &[[1; 8], [2; 8]], 62), 1);
    sample.add(&record(48, &[], 16), 0);
    sample.add(&record(9, &[], 56), 1);
    sample.add(&record(48, &[], 0), 0);
    sample.add(&record(3, &[], 52), 1);
    sample
}

fn samples() -> Vec<Sample> {
    let pcaps = BOTH_ORDERS.map(|order| [MICROSECONDS, NANOSECONDS].map(|magic| pcap_sample(order, magic)));
    pcaps.into_iter().flatten().chain([pcapng_sample(), erf_sample()]).collect()
}

#[test]
fn every_prefix_gives_the_frames_it_holds_whole_and_then_says_that_it_is_cut() {
    for sample in samples() {
        let expected = read_whole(sample.bytes.clone()).frames;
        for cut in 0..=sample.bytes.len() {
            let prefix = sample.bytes[..cut].to_vec();
            let header_bytes = sample.ends[0].0;
            if cut < header_bytes {
                let kind = read_bytes(prefix).unwrap_err().kind;
                let known = cut >= sample.known_from;
                assert_eq!(kind, if known { ErrorKind::Cut } else { ErrorKind::NotACapture }, "cut at {cut}");
                continue;
            }
            let all = read_bytes(prefix).unwrap();
            let (end, frames) = *sample.ends.iter().rev().find(|(end, _)| *end <= cut).unwrap();
            assert!(all.frames == expected[..frames], "cut at {cut}");
            if cut == end {
                assert!(all.errors.is_empty(), "cut at {cut}, between two records");
            } else {
                let error = &all.errors[0];
                assert_eq!((error.kind, error.offset), (ErrorKind::Cut, Some(end as u64)), "cut at {cut}: {error}");
                assert_eq!(error.frame, Some(frames as u64 + 1), "cut at {cut}");
                assert!(error.required.unwrap() > error.got.unwrap(), "cut at {cut}: {error}");
            }
        }
    }
}

/// The samples without compression, and with each compression.
static ALL_FORMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let plain: Vec<_> = samples().into_iter().map(|sample| sample.bytes).collect();
    let packed = plain.iter().flat_map(|bytes| PACKERS.map(|(_, pack)| pack(bytes)));
    packed.chain(plain.clone()).collect()
});

/// Checks that arbitrary bytes give at most one error, in the frame after the last complete one.
fn survives(bytes: Vec<u8>) {
    if let Ok(all) = read_bytes(bytes) {
        assert!(all.errors.len() <= 1);
        assert!(all.errors.iter().all(|error| error.frame == Some(all.frames.len() as u64 + 1)));
    }
}

#[test]
fn every_single_byte_changed_is_survived() {
    for bytes in ALL_FORMS.iter() {
        for at in 0..bytes.len() {
            for value in [0, 0xFF, bytes[at] ^ 1, bytes[at] ^ 0x80] {
                let mut changed = bytes.clone();
                changed[at] = value;
                survives(changed);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn several_bytes_changed_are_survived(
        form in 0..30_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut bytes = ALL_FORMS[form].clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        survives(bytes);
    }

    #[test]
    fn any_bytes_behind_a_good_header_are_survived(
        form in 0..6_usize,
        noise in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let sample = &samples()[form];
        survives([&sample.bytes[..sample.ends[0].0], &noise].concat());
    }

    #[test]
    fn any_blocks_with_any_content_are_survived(
        blocks in prop::collection::vec((0..12_u32, prop::collection::vec(any::<u8>(), 0..80)), 0..12),
    ) {
        let order = Order::Little;
        let mut file = [section(order), interface(order, 1, 0, &[])].concat();
        for (kind, body) in blocks {
            file.extend(block(order, kind, &body));
        }
        survives(file);
    }
}
