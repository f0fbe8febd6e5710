//! pcap files and their variants.

use std::io::Cursor;

use tcptrace_lab_core::capture::Capture;
use tcptrace_lab_core::error::ErrorKind;

use crate::support::*;

#[test]
fn every_magic_in_both_byte_orders_gives_the_same_frames() {
    for order in BOTH_ORDERS {
        for (magic, fraction, unit_ns) in [(MICROSECONDS, 123_456, 1_000), (NANOSECONDS, 123_456_789, 1)] {
            let mut file = pcap_header(order, magic, 96, ETHERNET);
            file.extend(pcap_record(order, 1_700_000_000, fraction, b"abcd", 1514));
            file.extend(pcap_record(order, 1_700_000_001, 0, b"", 60));
            let all = read_whole(file);
            let first = Owned {
                number: 1,
                ts_ns: Some(1_700_000_000_000_000_000 + i64::from(fraction) * unit_ns),
                link_type: Some(ETHERNET),
                original_bytes: 1514,
                data: b"abcd".to_vec(),
            };
            assert_eq!(all.frames[0], first, "{order:?} {magic:x}");
            assert_eq!((all.frames[1].number, all.frames[1].original_bytes, all.frames[1].data.len()), (2, 60, 0));
            assert_eq!(all.frames.len(), 2);
            assert_eq!(
                (all.info.format.as_str(), all.info.snaplen_bytes, all.info.resolution_ns),
                ("pcap", 96, unit_ns)
            );
            assert!(all.problems.is_empty());
        }
    }
}

#[test]
fn kuznetzov_records_have_eight_or_twelve_bytes_more() {
    for order in BOTH_ORDERS {
        for extra_bytes in [8, 12] {
            let mut file = pcap_header(order, MODIFIED, 1500, ETHERNET);
            for second in 0..4 {
                file.extend(order.words(&[second, 7, 6, 60]));
                // Interface 2, IPv4, packet type 0.
                let mut extra = order.u32(2).to_vec();
                extra.extend(order.u16(0x0800));
                extra.resize(extra_bytes, 0);
                file.extend(extra);
                file.extend([second as u8; 6]);
            }
            let all = read_whole(file);
            let seen: Vec<_> = all.frames.iter().map(|frame| (frame.ts_ns.unwrap(), frame.data[0])).collect();
            assert_eq!(seen, [(7_000, 0), (1_000_007_000, 1), (2_000_007_000, 2), (3_000_007_000, 3)], "{extra_bytes}");
            assert_eq!(all.info.format, "modified pcap");
        }
    }
}

#[test]
fn standard_magic_with_longer_record_headers_is_recognised_by_its_records() {
    // Two layouts with the standard magic number: Red Hat 6.1 wrote record headers of 24 bytes, and Nokia of 20 bytes.
    let order = Order::Little;
    for (extra, name) in [
        ([order.u32(3).to_vec(), order.u16(0x0800).to_vec(), vec![0, 0]].concat(), "modified pcap"),
        (order.u32(0x9FBF_B601).to_vec(), "Nokia pcap"),
        (order.u32(0).to_vec(), "Nokia pcap"), // written by Wireshark
    ] {
        // The address looks like the protocol and packet type of the longer header.
        let frame = [&[2, 0, 0, 0, 0, 2][..], &[0xEE; 54]].concat();
        let mut file = pcap_header(order, MICROSECONDS, 1500, ETHERNET);
        for second in 0..4 {
            file.extend(order.words(&[1_700_000_000 + second, 7, 60, 60]));
            file.extend(&extra);
            file.extend(&frame);
        }
        let all = read_whole(file);
        assert_eq!((all.frames.len(), all.info.format.as_str()), (4, name));
        assert!(all.frames.iter().all(|read| read.data == frame));
    }
}

#[test]
fn old_versions_have_the_lengths_the_other_way_round() {
    let order = Order::Big;
    for (version, swapped) in [((2, 2), true), ((2, 3), true), ((2, 3), false), ((543, 0), true), ((2, 4), false)] {
        let mut file = pcap_header_of_version(order, MICROSECONDS, version, 1500, ETHERNET);
        let lengths = if swapped { [60, 4] } else { [4, 60] };
        file.extend(order.words(&[5, 0]));
        file.extend(order.words(&lengths));
        file.extend(b"abcd");
        let frame = read_whole(file).frames.remove(0);
        assert_eq!((frame.original_bytes, frame.data.as_slice()), (60, &b"abcd"[..]), "{version:?}");
    }
}

#[test]
fn aix_files_name_interface_types_and_count_nanoseconds() {
    let mut file = pcap_header_of_version(Order::Big, MICROSECONDS, (2, 2), 1500, 6);
    file.extend(Order::Big.words(&[5, 999_999_999, 4, 4]));
    file.extend(b"abcd");
    let frame = read_whole(file).frames.remove(0);
    assert_eq!((frame.ts_ns, frame.link_type), (Some(5_999_999_999), Some(ETHERNET)));
}

#[test]
fn ixia_files_have_a_length_behind_the_header() {
    for (magic, ns) in [(0x1C00_01AC, 7), (0x1C00_01AB, 7_000)] {
        for order in BOTH_ORDERS {
            let mut file = pcap_header(order, magic, 1500, ETHERNET);
            file.extend(order.u32(20));
            file.extend(pcap_record(order, 0, 7, b"abcd", 4));
            let frame = read_whole(file).frames.remove(0);
            assert_eq!((frame.ts_ns, frame.data.as_slice()), (Some(ns), &b"abcd"[..]));
        }
    }
}

#[test]
fn version_1_is_refused() {
    let file = pcap_header_of_version(Order::Little, MICROSECONDS, (1, 0), 1500, ETHERNET);
    assert_eq!(read_bytes(file).unwrap_err().kind, ErrorKind::Unsupported);
}

#[test]
fn the_link_type_is_the_lower_half_of_its_field() {
    // An FCS of 4 bytes (2 × 16 bits), and the flag for a valid length.
    let mut file = pcap_header(Order::Little, MICROSECONDS, 1500, 0x2400_0000 | RAW);
    file.extend(pcap_record(Order::Little, 0, 0, b"abcd", 4));
    let all = read_whole(file);
    assert_eq!(all.frames[0].link_type, Some(RAW));
    assert!(all.problems.is_empty());

    let mut file = pcap_header(Order::Little, MICROSECONDS, 1500, 0x0011_0000 | RAW);
    file.extend(pcap_record(Order::Little, 0, 0, b"abcd", 4));
    let all = read_whole(file);
    assert_eq!(all.frames[0].link_type, Some(RAW));
    assert_eq!(all.problems.len(), 1, "reserved bits are said");
}

#[test]
fn seconds_are_unsigned_so_time_goes_on_to_2106() {
    let mut file = pcap_header(Order::Little, MICROSECONDS, 1500, RAW);
    file.extend(pcap_record(Order::Little, 0x8000_0000, 0, b"", 0));
    file.extend(pcap_record(Order::Little, u32::MAX, 999_999, b"", 0));
    let all = read_whole(file);
    assert_eq!(all.frames[0].ts_ns, Some(2_147_483_648_000_000_000));
    assert_eq!(all.frames[1].ts_ns, Some(4_294_967_295_999_999_000));
}

#[test]
fn a_second_in_the_subsecond_field_is_carried_and_said() {
    let mut file = pcap_header(Order::Little, MICROSECONDS, 1500, RAW);
    file.extend(pcap_record(Order::Little, 10, 999_999, b"", 0));
    file.extend(pcap_record(Order::Little, 10, 1_000_000, b"", 0));
    file.extend(pcap_record(Order::Little, 10, u32::MAX, b"", 0));
    let all = read_whole(file);
    let times: Vec<_> = all.frames.iter().map(|frame| frame.ts_ns.unwrap()).collect();
    assert_eq!(times, [10_999_999_000, 11_000_000_000, 4_304_967_295_000]);
    let problem = &all.problems[0];
    assert_eq!((problem.count, problem.frame, problem.offset, problem.loses_data), (2, Some(2), Some(40), false));
}

#[test]
fn records_above_the_snap_length_are_read() {
    for snaplen in [0, 1, u32::MAX] {
        let mut file = pcap_header(Order::Little, MICROSECONDS, snaplen, RAW);
        file.extend(pcap_record(Order::Little, 0, 0, &[7; 3000], 3000));
        assert_eq!(read_whole(file).frames[0].data, [7; 3000]);
    }
}

#[test]
fn a_captured_length_beyond_belief_is_damage() {
    // The maximum is 262,144 bytes, or up to 16 MiB with a larger snaplen.
    for (snaplen, length, believed) in [
        (65_535, 262_144, true),
        (65_535, 262_145, false),
        (524_288, 524_288, true),
        (524_288, 524_289, false),
        (u32::MAX, 16 << 20, true),
        (u32::MAX, (16 << 20) + 1, false),
    ] {
        let mut file = pcap_header(Order::Little, NANOSECONDS, snaplen, RAW);
        file.extend(pcap_record(Order::Little, 0, 0, b"abcd", 4));
        file.extend(pcap_record(Order::Little, 1, 0, &vec![0; length], length as u32));
        let all = read_bytes(file).unwrap();
        if believed {
            assert_eq!((all.frames.len(), all.frames[1].data.len()), (2, length));
        } else {
            let error = &all.errors[0];
            assert_eq!((all.frames.len(), error.kind), (1, ErrorKind::Damaged), "{error}");
            assert_eq!((error.frame, error.offset), (Some(2), Some(44)));
        }
    }
}

#[test]
fn a_cut_says_where_and_what_was_missing() {
    let mut file = pcap_header(Order::Little, MICROSECONDS, 1500, RAW);
    file.extend(pcap_record(Order::Little, 0, 0, b"abcd", 4));
    file.extend(pcap_record(Order::Little, 0, 0, b"abcdefgh", 8));
    file.truncate(file.len() - 3);
    let all = read_bytes(file).unwrap();
    let error = &all.errors[0];
    assert_eq!((all.frames.len(), error.kind, error.frame, error.offset), (1, ErrorKind::Cut, Some(2), Some(44)));
    assert_eq!((error.field, error.required, error.got), (Some("incl_len"), Some(8), Some(5)));
    assert_eq!(error.path, "memory");
}

#[test]
fn records_larger_than_the_buffer_and_bytes_in_drops_give_the_same_frames() {
    let mut file = pcap_header(Order::Little, MICROSECONDS, 1 << 20, RAW);
    for (index, bytes) in [10, 700_000, 0, 300_000, 1_048_576, 1].into_iter().enumerate() {
        file.extend(pcap_record(Order::Little, index as u32, 0, &vec![index as u8; bytes], bytes as u32));
    }
    let whole = read_whole(file.clone());
    assert_eq!(whole.frames.iter().map(|frame| frame.data.len()).sum::<usize>(), 2_048_587);
    for step in [1, 4093] {
        let trickle = Trickle { bytes: Cursor::new(file.clone()), step };
        let all = read_all(Capture::from_stream("pipe", trickle).unwrap());
        assert!(all.errors.is_empty());
        assert!(all.frames == whole.frames, "in steps of {step}");
    }
}
