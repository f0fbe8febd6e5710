//! Long files with as many of the smallest blocks, records and compressed parts as possible.

use tcptrace_lab_fuzz::{file, pipeline::Account};

/// Number of blocks, records or parts in each file.
const PARTS: usize = 100_000;

/// A pcapng block, little-endian.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes(), length.as_slice(), body, &length].concat()
}

fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
}

/// An interface description block without options.
fn interface(link_type: u16) -> Vec<u8> {
    block(1, &[link_type.to_le_bytes(), [0; 2], [0; 2], [0; 2]].concat())
}

/// A packet block without data.
fn packet(interface: u32) -> Vec<u8> {
    block(6, &[interface.to_le_bytes(), [0; 4], [0; 4], [0; 4], [0; 4]].concat())
}

fn repeated(head: &[u8], part: &[u8]) -> Account {
    file(&[head, &part.repeat(PARTS)].concat())
}

#[test]
fn every_block_is_another_interface_with_a_packet() {
    let mut bytes = section();
    for at in 0..PARTS as u32 {
        bytes.extend(interface(at as u16));
        bytes.extend(packet(at));
    }
    assert!(file(&bytes).bytes_read > 0);
}

#[test]
fn every_block_is_a_section() {
    repeated(&[], &[section(), interface(1), packet(0)].concat());
}

#[test]
fn every_block_is_unknown_and_empty() {
    repeated(&section(), &block(0x7777, &[]));
}

#[test]
fn every_interface_has_statistics_again() {
    repeated(&[section(), interface(1)].concat(), &block(5, &[0; 12]));
}

#[test]
fn every_packet_is_empty() {
    let header = [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0], [0; 8].as_slice(), &[0, 0, 4, 0, 1, 0, 0, 0]].concat();
    let account = repeated(&header, &[0; 16]);
    assert_eq!(account.segments, 0);
}

/// The output of `gzip`, `zstd`, `lz4` and `xz` for empty input, and a skippable frame of zstd and lz4.
const EMPTY: [(&str, &[u8]); 5] = [
    ("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0"),
    ("zstd", b"\x28\xb5\x2f\xfd\x20\0\x01\0\0"),
    ("lz4", b"\x04\x22\x4d\x18\x60\x40\x82\0\0\0\0"),
    ("xz", b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\0\0\0\0\x1c\xdf\x44\x21\x1f\xb6\xf3\x7d\x01\0\0\0\0\x04YZ"),
    ("skippable", b"\x50\x2a\x4d\x18\0\0\0\0"),
];

#[test]
fn every_compressed_part_is_empty() {
    for (name, part) in EMPTY {
        let account = repeated(&[], part);
        assert_eq!(account.bytes_read, 0, "{name}");
    }
}
