//! Handwritten ERF files, in which each frame is a whole record. ERF has no magic number, so a file is accepted as ERF
//! only if its records are consistent.

use tcptrace_lab_core::error::ErrorKind;

use crate::support::*;

/// A time in 2023, in seconds since 1970.
const SECOND: u32 = 1_700_000_000;

fn ethernet(second: u32, payload_bytes: usize) -> Vec<u8> {
    erf_record(&Erf { seconds: second, ..Erf::of(2) }, &vec![7; 2 + payload_bytes], payload_bytes as u16)
}

fn ethernet_file() -> Vec<u8> {
    (0..5).flat_map(|second| ethernet(SECOND + second, 60)).collect()
}

fn pad(body_bytes: usize) -> Vec<u8> {
    erf_record(&Erf { seconds: 0, ..Erf::of(48) }, &vec![0; body_bytes], 0)
}

#[test]
fn a_record_is_a_frame_with_its_header() {
    let record = erf_record(&Erf { fraction: 1 << 31, seconds: SECOND, ..Erf::of(2) }, &[7; 66], 1514);
    let all = read_whole([record.clone(), ethernet_file()].concat());
    let frame = &all.frames[0];
    assert_eq!((frame.number, frame.ts_ns, frame.link_type), (1, Some(1_700_000_000_500_000_000), Some(197)));
    // 1,514 bytes on the wire, 16 bytes of record header, and 2 bytes of Ethernet offset and padding.
    assert_eq!((frame.original_bytes, &frame.data), (1532, &record));
    assert_eq!((all.info.format.as_str(), all.info.snaplen_bytes, all.info.resolution_ns), ("erf", 0, 1));
}

#[test]
fn a_fraction_of_a_second_is_rounded_to_the_nearest_nanosecond() {
    // 2^-32 s is 0.2328 ns. Three such units round to 1 ns. The last unit of a second rounds to the next second.
    for (fraction, ns) in [(0, 0), (2, 0), (3, 1), (0x8000_0000, 500_000_000), (0xFFFF_FFFF, 1_000_000_000)] {
        let record = erf_record(&Erf { fraction, seconds: SECOND, ..Erf::of(22) }, &[0x45; 40], 40);
        assert_eq!(read_whole(record).frames[0].ts_ns, Some(i64::from(SECOND) * 1_000_000_000 + ns), "{fraction}");
    }
}

#[test]
fn extension_headers_and_channels_are_not_part_of_the_length_on_the_wire() {
    let with_extensions = Erf { extensions: vec![[3; 8], [4; 8]], ..Erf::of(4) };
    for (erf, headers_bytes) in [(Erf::of(1), 16), (Erf::of(9), 20), (Erf::of(17), 20), (with_extensions, 32)] {
        let record = erf_record(&erf, &[0; 60], 100);
        assert_eq!(read_whole(record).frames[0].original_bytes, headers_bytes + 100);
    }
}

#[test]
fn padding_records_are_no_frames_and_have_no_numbers() {
    let file = [pad(0), ethernet(SECOND, 60), pad(24), pad(0), ethernet(SECOND + 1, 60), pad(8)].concat();
    let numbers: Vec<_> = read_whole(file).frames.iter().map(|frame| frame.number).collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn records_that_the_card_lost_are_counted_where_there_is_no_colour_instead() {
    let lost = |kind, lost| erf_record(&Erf { lost, ..Erf::of(kind) }, &[7; 66], 60);
    assert_eq!(read_whole([lost(2, 3), lost(11, 9), lost(2, 4)].concat()).info.kernel_drops, Some(7));
    assert_eq!(read_whole(lost(11, 9)).info.kernel_drops, None);
}

#[test]
fn a_time_that_goes_far_and_a_type_that_is_unknown_are_carried_behind_the_first_records() {
    let file =
        [ethernet_file(), ethernet(0, 60), ethernet(u32::MAX, 60), erf_record(&Erf::of(31), &[0; 8], 8)].concat();
    let frames = read_whole(file).frames;
    assert_eq!(frames.len(), 8);
    assert_eq!((frames[5].ts_ns, frames[6].ts_ns), (Some(0), Some(4_294_967_295_000_000_000)));
}

#[test]
fn a_length_too_small_for_its_headers_ends_the_file() {
    let claiming = |erf: Erf, body: &[u8], record_bytes: u16| {
        let mut record = erf_record(&erf, body, 60);
        record[10..12].copy_from_slice(&record_bytes.to_be_bytes());
        record
    };
    let chained = Erf { extensions: vec![[0x83; 8]], ..Erf::of(22) };
    for record in [
        claiming(Erf::of(2), &[0; 62], 15),
        claiming(Erf::of(2), &[0; 62], 0),
        claiming(Erf::of(2), &[0; 62], 17),
        claiming(Erf::of(1), &[], 16),
        claiming(chained, &[], 24),
    ] {
        let all = read_bytes([ethernet_file(), record, ethernet_file()].concat()).unwrap();
        assert_eq!((all.frames.len(), all.errors.len()), (5, 1));
        let error = &all.errors[0];
        let end = ethernet_file().len() as u64;
        assert_eq!((error.kind, error.frame, error.offset), (ErrorKind::Damaged, Some(6), Some(end)), "{error}");
    }
}

#[test]
fn one_whole_record_is_enough_if_the_file_ends_there_or_goes_on_like_it() {
    let file = ethernet_file();
    let record_bytes = ethernet(SECOND, 60).len();
    assert_eq!(read_whole(file[..record_bytes].to_vec()).frames.len(), 1);
    for cut in record_bytes + 1..2 * record_bytes {
        assert_eq!(read_bytes(file[..cut].to_vec()).unwrap().frames.len(), 1, "cut at {cut}");
    }
}

#[test]
fn records_that_do_not_agree_with_each_other_are_no_erf() {
    let first = ethernet(SECOND, 60);
    let behind = |second: u32| [first.clone(), ethernet(second, 60), first.clone()].concat();
    let of_type = |kind| [first.clone(), erf_record(&Erf::of(kind), &[0; 60], 60)].concat();
    let swapped: Vec<u8> = behind(SECOND).chunks(2).flat_map(|pair| pair.iter().rev().copied()).collect();
    for (what, file) in [
        ("two seconds back", behind(SECOND - 3)),
        ("more than a year on", behind(SECOND + 366 * 24 * 3600)),
        ("a time before there was ERF", ethernet(5, 60)),
        ("type 0", of_type(0)),
        ("a reserved type", of_type(40)),
        ("only padding", [pad(0), pad(8)].concat()),
        ("no whole record", first[..70].to_vec()),
        ("nothing in the record", erf_record(&Erf::of(1), &[], 60)),
        ("bytes in pairs swapped", swapped),
        ("zeros", vec![0; 4096]),
        ("ones", vec![0xFF; 4096]),
    ] {
        let kind = read_bytes(file).map(|all| all.frames.len()).unwrap_err().kind;
        assert_eq!(kind, ErrorKind::NotACapture, "{what}");
    }
}

#[test]
fn text_that_would_pass_for_records_stays_text() {
    // The text is also an ERF record: seconds "2023" (little-endian), type "\n", length 0x2020. The file has this
    // length, so its only record is complete.
    let mut text = b"abcd2023\n\n  abab".to_vec();
    text.resize(0x2020, b'x');
    let error = read_bytes(text).unwrap_err();
    assert_eq!((error.kind, error.what.as_str()), (ErrorKind::NotACapture, "is text, not a capture"));
}
