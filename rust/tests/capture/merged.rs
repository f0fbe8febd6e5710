//! Several files read as one capture.

use tcptrace_lab_core::capture::Capture;
use tcptrace_lab_core::error::ErrorKind;

use crate::support::*;

/// A pcap file with frames at these times. A frame contains the file's tag and its own index in the file.
fn pcap_at(tag: u8, milliseconds: &[u32]) -> Vec<u8> {
    let mut file = pcap_header(Order::Little, MICROSECONDS, 1500, RAW);
    for (index, ms) in milliseconds.iter().enumerate() {
        file.extend(pcap_record(Order::Little, ms / 1000, ms % 1000 * 1000, &[tag, index as u8], 60));
    }
    file
}

fn merge(files: &[Vec<u8>]) -> All {
    let files: Vec<_> = files.iter().map(|bytes| Temporary::new(&unique(), bytes)).collect();
    let paths: Vec<_> = files.iter().map(Temporary::path).collect();
    read_all(Capture::open(&paths).unwrap())
}

fn unique() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("merge-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn tags(all: &All) -> String {
    all.frames.iter().map(|frame| char::from(frame.data[0])).collect()
}

#[test]
fn frames_come_in_the_order_of_time_and_are_numbered_in_it() {
    let all = merge(&[pcap_at(b'a', &[1, 4, 5]), pcap_at(b'b', &[2, 3, 9]), pcap_at(b'c', &[6])]);
    assert_eq!(tags(&all), "abbaacb");
    assert_eq!(all.frames.iter().map(|frame| frame.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn frames_of_one_time_come_in_the_order_of_the_paths() {
    let all = merge(&[pcap_at(b'a', &[1, 2, 2, 3]), pcap_at(b'b', &[2, 2, 3]), pcap_at(b'c', &[2])]);
    assert_eq!(tags(&all), "aaabbcab");
}

#[test]
fn time_that_runs_backward_does_not_change_the_order_within_a_file() {
    let all = merge(&[pcap_at(b'a', &[5, 1, 6]), pcap_at(b'b', &[2, 7])]);
    assert_eq!(tags(&all), "baaab");
    let of_a: Vec<_> = all.frames.iter().filter(|frame| frame.data[0] == b'a').map(|frame| frame.data[1]).collect();
    assert_eq!(of_a, [0, 1, 2]);
}

#[test]
fn frames_without_a_time_follow_their_predecessor() {
    let order = Order::Little;
    let with_simple = [
        section(order),
        interface(order, 101, 0, &[]),
        enhanced(order, 0, 5_000, b"a", 1, &[]),
        simple(order, b"A", 1),
        simple(order, b"A", 1),
        enhanced(order, 0, 9_000, b"a", 1, &[]),
    ];
    let all = merge(&[with_simple.concat(), pcap_at(b'b', &[1, 5, 6])]);
    assert_eq!(tags(&all), "baAAbba");
}

#[test]
fn a_file_that_ends_early_gives_its_error_once_and_the_others_go_on() {
    let mut cut = pcap_at(b'a', &[1, 2, 3]);
    cut.truncate(cut.len() - 1);
    let all = merge(&[cut, pcap_at(b'b', &[1, 2, 3, 4])]);
    assert_eq!(tags(&all), "ababbb");
    assert_eq!(all.errors.len(), 1);
    assert_eq!((all.errors[0].kind, all.errors[0].frame), (ErrorKind::Cut, Some(3)), "the third frame of its file");
}

#[test]
fn a_file_without_frames_is_no_trouble() {
    assert_eq!(tags(&merge(&[pcap_at(b'a', &[]), pcap_at(b'b', &[1]), pcap_at(b'c', &[])])), "b");
}

#[test]
fn one_file_that_cannot_be_opened_refuses_all() {
    let good = Temporary::new(&unique(), &pcap_at(b'a', &[1]));
    let error = Capture::open(&[good.path(), "/no/such/file".to_owned()]).err().unwrap();
    assert_eq!((error.kind, error.path.to_str()), (ErrorKind::Io, Some("/no/such/file")));
}

#[test]
fn what_the_files_say_is_put_together() {
    let order = Order::Little;
    let drops = |count| block(order, 5, &[order.words(&[0, 0, 0]), option(order, 5, &order.u64(count))].concat());
    let pcapng = |count, resolution| {
        let resolution = option(order, 9, &[resolution]);
        [section(order), interface(order, 1, 96, &[resolution]), drops(count)].concat()
    };
    let all = merge(&[pcapng(3, 9), pcap_at(b'b', &[1]), pcapng(4, 3)]);
    assert_eq!(all.info.format, "pcapng, pcap");
    assert_eq!((all.info.snaplen_bytes, all.info.resolution_ns), (1500, 1_000_000));
    assert_eq!(all.info.kernel_drops, Some(7));
}
