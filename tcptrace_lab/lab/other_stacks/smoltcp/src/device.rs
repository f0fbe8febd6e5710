//! A tun device that records each TCP segment.

use smoltcp::phy::{Device, DeviceCapabilities, RxToken, TunTapInterface, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{IpProtocol, Ipv4Packet, TcpPacket};

use crate::records;

/// The recording device.
pub struct Recorder(TunTapInterface);

impl Recorder {
    /// Record the segments of `tun`.
    pub fn new(tun: TunTapInterface) -> Self {
        Self(tun)
    }
}

impl Device for Recorder {
    type RxToken<'a> = Received<<TunTapInterface as Device>::RxToken<'a>>;
    type TxToken<'a> = Sent<<TunTapInterface as Device>::TxToken<'a>>;

    fn receive(&mut self, now: Instant) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        self.0.receive(now).map(|(received, sent)| (Received(received), Sent(sent)))
    }

    fn transmit(&mut self, now: Instant) -> Option<Self::TxToken<'_>> {
        self.0.transmit(now).map(Sent)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        self.0.capabilities()
    }
}

/// A packet that has arrived. It is recorded before the stack processes it.
pub struct Received<T>(T);

impl<T: RxToken> RxToken for Received<T> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, process: F) -> R {
        self.0.consume(|packet| {
            segment("received", packet);
            process(packet)
        })
    }
}

/// A packet that leaves. It is recorded when the stack has filled it.
pub struct Sent<T>(T);

impl<T: TxToken> TxToken for Sent<T> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        self.0.consume(length, |packet| {
            let result = fill(packet);
            segment("transmit", packet);
            result
        })
    }
}

fn segment(kind: &'static str, packet: &[u8]) {
    let Ok(ip) = Ipv4Packet::new_checked(packet) else { return };
    if ip.next_header() != IpProtocol::Tcp {
        return;
    }
    let Ok(tcp) = TcpPacket::new_checked(ip.payload()) else { return };
    let bits = [tcp.fin(), tcp.syn(), tcp.rst(), tcp.psh(), tcp.ack(), tcp.urg(), tcp.ece(), tcp.cwr()];
    let flags = bits.iter().enumerate().fold(0, |all, (place, is_set)| all | usize::from(*is_set) << place);
    let port = if kind == "received" { tcp.dst_port() } else { tcp.src_port() };
    let number = |seq: smoltcp::wire::TcpSeqNumber| seq.0.cast_unsigned() as usize;
    records::add(
        kind,
        &[
            ("seq", number(tcp.seq_number())),
            ("ack", number(tcp.ack_number())),
            ("bytes", tcp.payload().len()),
            ("flags", flags),
            ("port", usize::from(port)),
        ],
    );
}
