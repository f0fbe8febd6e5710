//! pcapng files: sections, interfaces, kinds of blocks, and malformed blocks.

use tcptrace_lab_core::error::ErrorKind;

use crate::support::*;

const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;

#[test]
fn an_enhanced_packet_is_read_in_both_byte_orders() {
    for order in BOTH_ORDERS {
        let file = [
            section(order),
            interface(order, 101, 96, &[]),
            enhanced(order, 0, 1_700_000_000_123_456, b"abcde", 1500, &[]),
        ];
        let all = read_whole(file.concat());
        let frame = Owned {
            number: 1,
            ts_ns: Some(1_700_000_000_123_456_000),
            link_type: Some(RAW),
            original_bytes: 1500,
            data: b"abcde".to_vec(),
        };
        assert_eq!(all.frames, [frame], "{order:?}");
        let info = &all.info;
        assert_eq!((info.format.as_str(), info.snaplen_bytes, info.resolution_ns), ("pcapng", 96, 1_000));
        assert_eq!(info.kernel_drops, None);
    }
}

#[test]
fn each_interface_has_its_own_link_type_and_clock() {
    let order = Order::Little;
    let file = [
        section(order),
        interface(order, 1, 0, &[option(order, RESOLUTION, &[9])]),
        interface(order, 113, 0, &[option(order, RESOLUTION, &[0x80 + 10]), option(order, 0, b"")]),
        interface(order, 101, 0, &[option(order, OFFSET, &order.u64(1_700_000_000))]),
        interface(order, 0, 0, &[option(order, 1, b"a comment"), option(order, RESOLUTION, &[3])]),
        enhanced(order, 0, 7, b"", 0, &[]),
        enhanced(order, 1, 1024 + 512, b"", 0, &[]),
        enhanced(order, 2, 1, b"", 0, &[]),
        enhanced(order, 3, 1_001, b"", 0, &[]),
    ];
    let all = read_whole(file.concat());
    let seen: Vec<_> = all.frames.iter().map(|frame| (frame.link_type.unwrap(), frame.ts_ns.unwrap())).collect();
    assert_eq!(seen, [(1, 7), (113, 1_500_000_000), (101, 1_700_000_000_000_001_000), (0, 1_001_000_000)]);
    assert_eq!(all.info.resolution_ns, 1_000_000, "the coarsest is 2^-10 s and 1 ms");
}

#[test]
fn a_section_forgets_the_interfaces_and_may_change_the_byte_order() {
    let mut file = [section(Order::Little), interface(Order::Little, 1, 0, &[])].concat();
    file.extend(enhanced(Order::Little, 0, 1, b"one", 3, &[]));
    file.extend(section(Order::Big));
    file.extend(interface(Order::Big, 101, 0, &[]));
    file.extend(enhanced(Order::Big, 0, 2, b"two", 3, &[]));
    file.extend(section(Order::Little));
    file.extend(enhanced(Order::Little, 0, 3, b"three", 5, &[]));
    let all = read_bytes(file).unwrap();
    let seen: Vec<_> = all.frames.iter().map(|frame| (frame.link_type.unwrap(), frame.data.clone())).collect();
    assert_eq!(seen, [(1, b"one".to_vec()), (101, b"two".to_vec())]);
    let error = &all.errors[0];
    assert_eq!((error.kind, error.frame), (ErrorKind::Damaged, Some(3)), "the third section has no interface");
}

#[test]
fn a_simple_packet_has_no_time_and_is_cut_by_the_snap_length() {
    for order in BOTH_ORDERS {
        let file = [
            section(order),
            interface(order, 101, 4, &[]),
            interface(order, 1, 0, &[]),
            simple(order, b"abcd", 60),
            simple(order, b"abc", 3),
            simple(order, b"ab\0\0", 4),
        ];
        let all = read_whole(file.concat());
        let seen: Vec<_> = all.frames.iter().map(|frame| (frame.original_bytes, frame.data.clone())).collect();
        assert_eq!(seen, [(60, b"abcd".to_vec()), (3, b"abc".to_vec()), (4, b"ab\0\0".to_vec())]);
        assert!(all.frames.iter().all(|frame| frame.ts_ns.is_none() && frame.link_type == Some(RAW)));
        assert!(all.problems.is_empty());
    }
}

#[test]
fn a_simple_packet_longer_than_its_block_is_cut_by_the_block_and_said() {
    let order = Order::Little;
    let file = [section(order), interface(order, 101, 0, &[]), simple(order, b"abcd", 60)];
    let all = read_whole(file.concat());
    assert_eq!(all.frames[0].data, b"abcd");
    assert_eq!((all.problems.len(), all.problems[0].frame), (1, Some(1)));
}

#[test]
fn the_obsolete_packet_block_shares_a_word_between_interface_and_drops() {
    for order in BOTH_ORDERS {
        let mut body = order.u16(1).to_vec();
        body.extend(order.u16(5));
        body.extend(order.words(&[0, 77, 2, 60]));
        body.extend(b"ab");
        let mut unknown = order.u16(0).to_vec();
        unknown.extend(order.u16(0xFFFF));
        unknown.extend(order.words(&[1, 0, 0, 0]));
        let interfaces = [interface(order, 1, 0, &[]), interface(order, 101, 0, &[])].concat();
        let file = [section(order), interfaces, block(order, 2, &body), block(order, 2, &unknown)];
        let all = read_whole(file.concat());
        let frame = &all.frames[0];
        assert_eq!((frame.link_type, frame.ts_ns, frame.original_bytes), (Some(RAW), Some(77_000), 60));
        assert_eq!(frame.data, b"ab");
        assert_eq!(all.frames[1].ts_ns, Some((1 << 32) * 1_000));
        assert_eq!(all.info.kernel_drops, Some(5));
    }
}

#[test]
fn drops_are_the_statistics_or_what_the_packets_say_whichever_is_more() {
    let order = Order::Big;
    let statistics =
        |id: u32, options: &[Vec<u8>]| block(order, 5, &[order.words(&[id, 0, 0]), options.concat()].concat());
    let drops = |count| [option(order, 4, &order.u64(count))];
    let file = [
        section(order),
        interface(order, 1, 0, &[]),
        interface(order, 1, 0, &[]),
        enhanced(order, 0, 0, b"abc", 3, &drops(2)),
        enhanced(
            order,
            0,
            0,
            b"abc",
            3,
            &[option(order, 1, b"comment"), drops(3)[0].clone(), option(order, 4, b"bad")],
        ),
        enhanced(order, 1, 0, b"abc", 3, &drops(1)),
        // Statistics are cumulative, so the last statistics count. The interface dropped 4 packets and the system 3,
        // which is more than the 5 drops in packet blocks.
        statistics(0, &[option(order, 5, &order.u64(1))]),
        statistics(0, &[option(order, 5, &order.u64(4)), option(order, 7, &order.u64(3))]),
        section(order),
        interface(order, 1, 0, &[]),
        statistics(0, &[option(order, 5, &order.u64(100))]),
    ];
    assert_eq!(read_whole(file.concat()).info.kernel_drops, Some(7 + 1 + 100));
}

#[test]
fn blocks_without_a_packet_are_skipped_or_numbered_as_wireshark_does() {
    let order = Order::Little;
    let mut file = [section(order), interface(order, 1, 0, &[])].concat();
    let packet = enhanced(order, 0, 1, b"packet", 6, &[]);
    // Blocks without a number: name resolution, decryption secrets, an unknown block, a local block.
    for kind in [4, 10, 0x1234, 0x8000_0001] {
        file.extend(block(order, kind, b"no packet in here"));
    }
    file.extend(&packet);
    // Blocks with a number: custom blocks, the systemd journal, sysdig events.
    for kind in [0x0BAD, 0x4000_0BAD, 9, 0x204, 0x216, 0x221] {
        file.extend(block(order, kind, b"no packet in here"));
    }
    file.extend(&packet);
    let all = read_whole(file);
    let packets: Vec<_> =
        all.frames.iter().filter(|frame| frame.link_type.is_some()).map(|frame| frame.number).collect();
    assert_eq!((packets, all.frames.len()), (vec![1, 8], 8));
    let numbered = Owned { number: 2, ts_ns: None, link_type: None, original_bytes: 0, data: vec![] };
    assert_eq!(all.frames[1], numbered);
}

#[test]
fn a_block_whose_lengths_contradict_is_damage_at_its_offset() {
    let order = Order::Little;
    let good = [section(order), interface(order, 1, 0, &[]), enhanced(order, 0, 1, b"abcd", 4, &[])].concat();
    let packet = enhanced(order, 0, 2, b"abcd", 4, &[]);
    let with = |at: usize, value: u32| {
        let mut packet = packet.clone();
        packet[at..at + 4].copy_from_slice(&order.u32(value));
        packet
    };
    let begin = good.len() as u64;
    for (what, block) in [
        ("less than a block", with(4, 8)),
        ("less than its kind", [order.words(&[6, 16, 0, 16]), vec![0; 64]].concat()),
        ("the end says otherwise", with(packet.len() - 4, 40)),
        ("an end of all ones", with(packet.len() - 4, u32::MAX)),
        ("more packet than block", with(20, 5)),
        ("a packet of 4 GiB", with(20, u32::MAX)),
        ("an interface that is not there", with(8, 1)),
        ("a block of 4 GiB", with(4, u32::MAX)),
        ("an unknown block of 4 GiB", [order.words(&[99, u32::MAX]), vec![0; 64]].concat()),
        ("a section without its magic", block(order, 0x0A0D_0D0A, &[7; 16])),
    ] {
        let all = read_bytes([good.clone(), block].concat()).unwrap();
        let error = &all.errors[0];
        assert_eq!((all.frames.len(), error.kind), (1, ErrorKind::Damaged), "{what}: {error}");
        assert_eq!((error.frame, error.offset), (Some(2), Some(begin)), "{what}: {error}");
    }
}

#[test]
fn a_block_length_that_is_no_multiple_of_four_is_rounded_up() {
    let order = Order::Little;
    let mut packet = enhanced(order, 0, 2, b"abc", 3, &[]);
    let end = packet.len() - 4;
    packet[4..8].copy_from_slice(&order.u32(35));
    packet[end..].copy_from_slice(&order.u32(35));
    let file = [section(order), interface(order, 1, 0, &[]), packet, enhanced(order, 0, 3, b"d", 1, &[])];
    let all = read_whole(file.concat());
    assert_eq!(all.frames.iter().map(|frame| frame.data.as_slice()).collect::<Vec<_>>(), [&b"abc"[..], b"d"]);
}

#[test]
fn a_later_version_of_the_format_is_unsupported() {
    let mut file = section(Order::Little);
    file[12] = 2;
    assert_eq!(read_bytes(file).unwrap_err().kind, ErrorKind::Unsupported);
}

#[test]
fn a_section_cannot_have_interfaces_without_end() {
    let order = Order::Little;
    let file = [section(order), interface(order, 1, 0, &[]).repeat(65_537), enhanced(order, 0, 0, b"", 0, &[])];
    let all = read_bytes(file.concat()).unwrap();
    assert_eq!((all.frames.len(), all.errors[0].kind), (0, ErrorKind::Damaged));
}

#[test]
fn a_time_beyond_the_year_2262_is_unknown_and_said_to_be() {
    let order = Order::Little;
    let file = [section(order), interface(order, 1, 0, &[]), enhanced(order, 0, u64::MAX, b"", 0, &[])];
    let all = read_whole(file.concat());
    assert_eq!(all.frames[0].ts_ns, None);
    assert_eq!((all.problems.len(), all.problems[0].frame), (1, Some(1)));
}
