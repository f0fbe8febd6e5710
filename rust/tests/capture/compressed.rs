//! Captures in gzip, zstd, lz4 and xz: recognized by content, read in pieces, truncated, damaged, and hostile.

use std::io::{Cursor, Read, Write};

use proptest::prelude::*;
use tcptrace_lab_core::capture::Capture;
use tcptrace_lab_core::error::ErrorKind;

use crate::support::*;

/// A capture of three frames, compressed by the original tools. The frames were captured from 1,700,000,000 s on, have
/// 20 captured bytes each (of value 0, 1 or 2), and 60 bytes on the wire. The tools are gzip 1.12 -9n, zstd 1.5.4 -19,
/// lz4 1.9.4 -9, lz4 -9 -BD --content-size, lz4 -l, xz 5.4.1 -9.
const PACKED_BY_TOOLS: [(&str, &str); 6] = [
    (
        "gzip",
        "1f8b0800000000000203bb7278d3422606160618f8ff9f818111c4f8189c0aa24480d886013b6004aa614452c388053001d53021a961c2\
         0200e9e5867f84000000",
    ),
    (
        "zstd",
        "28b52ffd2484b501007282080ff0394b59854070a412d0f24824530a00f017e93db6c5b68bd4b66fef3a0c769801072020371e26611c01\
         86491c86a61ad1b9b3778a33",
    ),
    (
        "lz4",
        "04224d186440a74200000084d4c3b2a102000400010050ffff000001090030f1536507006f140000003c000100035701f1536501240\
         01f010100005702f153650224001a020100500202020202000000002751c43a",
    ),
    (
        "lz4",
        "04224d186c408400000000000000be4200000084d4c3b2a102000400010050ffff000001090030f1536507006f140000003c0001000\
         35701f153650124001f010100005702f153650224001a020100500202020202000000002751c43a",
    ),
    (
        "lz4",
        "02214c184600000084d4c3b2a102000400010050ffff0000010d0030f15365070050140000003c09000f0200004001f153652c00042\
         4001f010100005702f153650224001a020100500202020202",
    ),
    (
        "xz",
        "fd377a585a000004e6d6b446020021011c00000010cf58cce00083002d5d006a30d1c87d8bf8099bad944b8af34ad098128f2a506f68ac\
         2d312bc82cef6bf1f962eb18681e6cad6baaa72a60000000004163659ccba3dd7200014984010000004efed817b1c467fb020000000004\
         595a",
    ),
];

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|index| u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

type Packer = fn(&[u8]) -> Vec<u8>;

pub const PACKERS: [(&str, Packer); 4] = [("gzip", gzip), ("zstd", zstd), ("lz4", lz4), ("xz", xz)];

/// A capture of `frames` frames of 1,000 bytes. Half of the frames are noise, so the compressed capture has many
/// blocks.
fn noisy_capture(frames: u32) -> Vec<u8> {
    let mut file = pcap_header(Order::Little, MICROSECONDS, 1500, RAW);
    let mut state = 1_u32;
    for second in 0..frames {
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let mut data: Vec<u8> = (0..500).map(|_| noise()).collect();
        data.resize(1000, second as u8);
        file.extend(pcap_record(Order::Little, second, 0, &data, 1000));
    }
    file
}

#[test]
fn what_the_tools_packed_is_read() {
    for (name, hex) in PACKED_BY_TOOLS {
        let all = read_whole(unhex(hex));
        assert_eq!(all.info.format, format!("{name} pcap"));
        let seen: Vec<_> = all.frames.iter().map(|frame| (frame.ts_ns.unwrap(), frame.data.clone())).collect();
        let expected: Vec<_> =
            (0..3).map(|i| (1_700_000_000_000_000_000 + i * 1_000_001_000, vec![i as u8; 20])).collect();
        assert_eq!(seen, expected, "{name}");
    }
}

#[test]
fn a_capture_in_many_pieces_is_one_capture() {
    let plain = noisy_capture(900);
    let expected = read_whole(plain.clone());
    for (name, pack) in PACKERS {
        let packed: Vec<u8> = plain.chunks(300_000).flat_map(pack).collect();
        let all = read_whole(packed.clone());
        assert!(all.frames == expected.frames, "{name}");
        let trickle = Trickle { bytes: Cursor::new(packed), step: 7919 };
        let all = read_all(Capture::from_stream("pipe", trickle).unwrap());
        assert!(all.errors.is_empty() && all.frames == expected.frames, "{name} through a pipe");
    }
}

#[test]
fn zstd_and_lz4_frames_may_mix_with_frames_to_be_skipped() {
    let plain = noisy_capture(3);
    let skipped = [&0x184D_2A57_u32.to_le_bytes()[..], &5_u32.to_le_bytes(), b"hello"].concat();
    let packed = [skipped.clone(), zstd(&plain[..1000]), skipped.clone(), lz4(&plain[1000..]), skipped].concat();
    let all = read_whole(packed);
    assert_eq!((all.frames.len(), all.info.format.as_str()), (3, "zstd pcap"));
}

#[test]
fn zeros_behind_gzip_are_padding_and_other_bytes_are_remarked() {
    let packed = gzip(&noisy_capture(2));
    let all = read_whole([packed.clone(), vec![0; 700]].concat());
    assert_eq!((all.frames.len(), all.problems.len()), (2, 0));
    let all = read_whole([packed, b"tail".to_vec()].concat());
    assert_eq!((all.frames.len(), all.problems.len(), all.problems[0].loses_data), (2, 1, false));
}

#[test]
fn what_is_packed_twice_is_refused() {
    for (name, pack) in PACKERS {
        let error = read_bytes(pack(&gzip(&noisy_capture(1)))).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotACapture, "{name}: {error}");
    }
}

#[test]
fn packed_text_and_packed_nothing_are_no_captures() {
    for (name, pack) in PACKERS {
        assert_eq!(read_bytes(pack(b"some words")).unwrap_err().kind, ErrorKind::NotACapture, "{name}");
        let error = read_bytes(pack(b"")).unwrap_err();
        assert_eq!(error.what, format!("is {name} data without content"));
    }
}

#[test]
fn a_wrong_checksum_is_damage_after_all_frames() {
    let plain = noisy_capture(5);
    for (name, pack, from_end) in [("gzip", gzip as Packer, 6), ("zstd", zstd, 1), ("xz", xz, 28)] {
        let mut packed = pack(&plain);
        let at = packed.len() - from_end;
        packed[at] ^= 1;
        let all = read_bytes(packed).unwrap();
        assert_eq!((all.frames.len(), all.errors[0].kind), (5, ErrorKind::Damaged), "{name}: {}", all.errors[0]);
    }
}

#[test]
fn a_window_above_the_limit_is_refused_before_memory_is_taken() {
    // zstd: not a single segment; the window descriptor 0xA0 means 2^(10+20) bytes.
    let error = read_bytes([&0xFD2F_B528_u32.to_le_bytes()[..], &[0x00, 0xA0, 1, 0, 0]].concat()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    // xz: a dictionary of 1 GiB (property byte 36).
    let mut options = lzma_rust2::XzOptions::with_preset(1);
    options.lzma_options.dict_size = 1 << 30;
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(&noisy_capture(1)).unwrap();
    let error = read_bytes(encoder.finish().unwrap()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
}

#[test]
fn a_bomb_is_refused_when_it_has_expanded_too_far() {
    // One zstd frame of run-length blocks: each 4 bytes become 128 KiB of zeros. After the header of a pcap file, the
    // zeros are records of 16 bytes with time 0 and length 0.
    let mut packed = [&0xFD2F_B528_u32.to_le_bytes()[..], &[0x00, 0x58]].concat();
    let header = pcap_header(Order::Little, NANOSECONDS, 1500, RAW);
    packed.extend(&((header.len() as u32) << 3).to_le_bytes()[..3]);
    packed.extend(header);
    for _ in 0..1000 {
        let size = 128 << 10;
        packed.extend(&((size << 3) | 2_u32).to_le_bytes()[..3]);
        packed.push(0);
    }
    let mut capture = Capture::from_stream("bomb", Cursor::new(packed)).unwrap();
    let mut frames = 0_u64;
    let error = loop {
        match capture.advance() {
            Ok(true) => frames += 1,
            Ok(false) => panic!("the bomb went off"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
    assert!(error.what.contains("bomb"), "{error}");
    assert!(frames * 16 < (100 << 20), "{frames} frames");
}

#[test]
fn a_cut_gzip_file_gives_all_that_can_be_inflated() {
    let plain = noisy_capture(100);
    let packed = gzip(&plain);
    for cut in (20..packed.len()).step_by(997) {
        let mut inflated = Vec::new();
        // flate2's own reader gives the expected bytes, and ends with an error here, too.
        let _ = flate2::read::GzDecoder::new(&packed[..cut]).read_to_end(&mut inflated);
        let whole_frames = inflated.len().saturating_sub(24) / 1016;
        match read_bytes(packed[..cut].to_vec()) {
            Ok(all) => {
                assert_eq!(all.frames.len(), whole_frames, "cut at {cut}");
                assert_eq!(all.errors[0].kind, ErrorKind::Cut, "cut at {cut}: {}", all.errors[0]);
            }
            Err(error) => assert_eq!((error.kind, whole_frames), (ErrorKind::Cut, 0)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A truncated file of any compression returns its first frames unchanged, and then reports the truncation.
    #[test]
    fn a_cut_gives_frames_from_the_front_and_then_says_so(kind in 0..4_usize, part in 0.0..1.0_f64) {
        let plain = noisy_capture(600);
        let (name, pack) = PACKERS[kind];
        let packed = pack(&plain);
        let cut = (packed.len() as f64 * part) as usize;
        prop_assume!(cut > 8);
        match read_bytes(packed[..cut].to_vec()) {
            Ok(all) => {
                let expected = read_whole(plain).frames;
                prop_assert!(all.frames.len() < expected.len() && expected.starts_with(&all.frames), "{}", name);
                prop_assert_eq!(all.errors.len(), 1);
                prop_assert_eq!(all.errors[0].kind, ErrorKind::Cut, "{}: {}", name, &all.errors[0]);
                // At most an unfinished block of 256 KiB can be missing.
                let missing = part * 600.0 - all.frames.len() as f64;
                prop_assert!(missing < 700.0 * 0.5, "{}: {} frames of {}", name, all.frames.len(), part * 600.0);
            }
            Err(error) => prop_assert_eq!(error.kind, ErrorKind::Cut, "{}: {}", name, error),
        }
    }
}
