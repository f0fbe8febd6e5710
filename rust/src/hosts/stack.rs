//! Guesses the TCP stack of a host from its SYN. Settings, middleboxes and tunnels can change the SYN.
//!
//! The guess uses two properties: the initial TTL and the order of the TCP options. The code of a stack fixes the
//! order, which is known for common stacks. A SYN-ACK contains only options that the SYN offered, so it often shows
//! less than a SYN does.

use crate::accounts::{INITIAL_TTLS, SynShape};

/// A family of TCP stacks, in the order of `STACKS` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Stack {
    Linux,
    Apple,
    FreeBsd,
    OpenBsd,
    Windows,
    Solaris,
}

/// For each SYN: its options in order, its initial TTL, and the family. Sources: `tcp_options_write` (Linux),
/// `tcp_addoptions` (FreeBSD), `tcp_output` (XNU, OpenBSD); Windows and Solaris from captures.
const SIGNATURES: [(&str, u8, Stack); 13] = [
    ("mss,sackOK,TS,nop,wscale", 64, Stack::Linux),
    ("mss,nop,nop,sackOK,nop,wscale", 64, Stack::Linux),
    ("mss,sackOK,TS", 64, Stack::Linux),
    ("mss,nop,wscale,nop,nop,TS,sackOK,eol", 64, Stack::Apple),
    ("mss,nop,wscale,nop,nop,TS,sackOK,eol,eol", 64, Stack::Apple),
    ("mss,sackOK,eol,eol", 64, Stack::Apple),
    ("mss,nop,wscale,sackOK,TS", 64, Stack::FreeBsd),
    ("mss,nop,nop,sackOK,nop,wscale,nop,nop,TS", 64, Stack::OpenBsd),
    ("mss,nop,wscale,nop,nop,sackOK", 128, Stack::Windows),
    ("mss,nop,nop,sackOK", 128, Stack::Windows),
    ("mss,nop,wscale,sackOK,TS", 128, Stack::Windows),
    ("mss,nop,wscale,nop,nop,TS,nop,nop,sackOK", 128, Stack::Windows),
    ("sackOK,TS,mss,nop,wscale", 64, Stack::Solaris),
];

/// Returns the family that a SYN shows.
#[must_use]
pub fn stack(syn: &SynShape) -> Option<Stack> {
    family(&syn.option_names(), syn.ttl)
}

/// The initial TTL is assumed to be the smallest common one that is not below the captured TTL.
fn family(options: &str, ttl: u8) -> Option<Stack> {
    let start = INITIAL_TTLS.into_iter().find(|start| ttl <= *start)?;
    SIGNATURES.iter().find(|(names, initial, _)| *names == options && *initial == start).map(|(_, _, stack)| *stack)
}

#[cfg(test)]
mod tests {
    use super::{Stack, family};

    #[test]
    fn equal_options_are_distinguished_by_the_initial_ttl() {
        let options = "mss,nop,wscale,sackOK,TS";
        let table = [
            (1, Some(Stack::FreeBsd)),
            (64, Some(Stack::FreeBsd)),
            (65, Some(Stack::Windows)),
            (128, Some(Stack::Windows)),
            (129, None),
        ];
        for (ttl, expected) in table {
            assert_eq!(family(options, ttl), expected, "{ttl}");
        }
        assert_eq!(family("mss", 64), None);
        assert_eq!(family("", 64), None);
    }
}
