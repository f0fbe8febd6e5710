//! Opening files, pipes, and many things that are no captures.

use std::io::Write;

use tcptrace_lab_core::capture::Capture;
use tcptrace_lab_core::error::{CaptureError, ErrorKind};

use crate::support::*;

fn small_pcap() -> Vec<u8> {
    let mut file = pcap_header(Order::Little, MICROSECONDS, 1500, RAW);
    for second in 0..3 {
        file.extend(pcap_record(Order::Little, second, 0, &[second as u8; 40], 40));
    }
    file
}

fn open_error(path: &str) -> CaptureError {
    Capture::open(&[path.to_owned()]).err().expect("does not open")
}

#[test]
fn a_missing_file_a_directory_and_nothing_at_all_are_errors_of_the_system() {
    for path in ["/no/such/file", "/"] {
        let error = open_error(path);
        assert_eq!((error.kind, error.path.to_str()), (ErrorKind::Io, Some(path)));
    }
    assert!(open_error("/").to_string().contains("directory"));
    assert_eq!(Capture::open(&[""; 0]).err().unwrap().kind, ErrorKind::Io);
}

#[test]
fn an_empty_file_and_a_text_are_no_captures() {
    let empty = Temporary::new("empty", b"");
    let text = Temporary::new("text.pcap", b"No.,Time,Source\n1,0.0,10.0.0.1\n");
    let error = open_error(&empty.path());
    assert_eq!((error.kind, error.what.as_str()), (ErrorKind::NotACapture, "is empty"));
    let error = open_error(&text.path());
    assert_eq!((error.kind, error.what.as_str()), (ErrorKind::NotACapture, "is text, not a capture"));
}

#[test]
fn a_file_is_known_by_its_content_and_not_by_its_name() {
    let file = Temporary::new("capture.txt.gz", &small_pcap());
    let all = read_all(Capture::open(&[file.path()]).unwrap());
    assert_eq!((all.frames.len(), all.info.format.as_str()), (3, "pcap"));
}

#[test]
fn stdin_is_read_only_once() {
    let error = Capture::open(&["-".to_owned(), "-".to_owned()]).err().unwrap();
    assert_eq!((error.kind, error.path.to_str()), (ErrorKind::Io, Some("-")));
}

#[test]
fn a_pipe_gives_each_frame_as_soon_as_it_was_written() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let bytes = small_pcap();
    // The header alone suffices to open a capture, without waiting for records.
    writer.write_all(&bytes[..24]).unwrap();
    let mut capture = Capture::from_stream("pipe", reader).unwrap();
    for record in 0..3 {
        let at = 24 + record * 56;
        writer.write_all(&bytes[at..at + 56]).unwrap();
        assert!(capture.advance().unwrap());
        assert_eq!(capture.frame().data, [record as u8; 40]);
    }
    drop(writer);
    assert!(!capture.advance().unwrap());
}

#[test]
fn a_fifo_is_read_like_a_file() {
    let directory = Temporary::new("fifo", b"");
    std::fs::remove_file(&directory.0).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&directory.0).status().unwrap();
    assert!(made.success());
    let path = directory.path();
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::write(path, small_pcap()).unwrap()
    });
    let all = read_all(Capture::open(&[path]).unwrap());
    writer.join().unwrap();
    assert_eq!((all.frames.len(), all.errors.len()), (3, 0));
}

#[test]
fn a_growing_file_is_read_to_its_present_end() {
    let bytes = small_pcap();
    let file = Temporary::new("growing", &bytes[..24 + 56 + 30]);
    let all = read_all(Capture::open(&[file.path()]).unwrap());
    let error = &all.errors[0];
    assert_eq!((all.frames.len(), error.kind, error.frame, error.offset), (1, ErrorKind::Cut, Some(2), Some(80)));
}

#[test]
fn a_capture_can_be_read_on_one_thread_and_asked_on_another() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Capture>();
}
