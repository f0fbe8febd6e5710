//! The headers that can follow one another, and the path of them that led to a segment.

use std::sync::{Arc, Mutex, PoisonError};

use super::fragments::FragmentPlace;
use super::{MAX_LAYERS, tcp};

/// The header that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Ethernet,
    /// A 16-bit type as in Ethernet, with what it announces.
    EtherType(u16),
    /// IEEE 802.1Q and 802.1ad.
    Vlan,
    /// IEEE 802.1ah: provider backbone.
    Backbone,
    /// Cisco's.
    FabricPath,
    /// Cisco's security group.
    Metadata,
    Hsr,
    Macsec,
    Nsh,
    Trill,
    /// IEEE 802.2 LLC, perhaps with SNAP.
    Llc,
    /// IPv4 or IPv6, told apart by the version nibble.
    Ip,
    Ipv4,
    Ipv6,
    /// What the IP protocol or next-header number announces.
    IpProtocol(u8),
    /// A fragment of an IP packet.
    Fragment(FragmentPlace),
    /// HDLC framing: PPP or Cisco's.
    Hdlc,
    /// PPP (RFC 1661), with or without its HDLC address and control.
    Ppp,
    /// PPP over Ethernet (RFC 2516).
    Pppoe,
    /// MPLS label stack (RFC 3032).
    Mpls,
    /// GRE (RFC 2784, RFC 2890, RFC 2637).
    Gre,
    /// Type II, whose header is there if GRE has a sequence number, and type III.
    Erspan2 {
        sequenced: bool,
    },
    Erspan3,
    Wccp,
    /// UDP: only for the tunnels in it.
    Udp,
    Vxlan,
    Geneve,
    /// GTP version 1, user plane.
    Gtp,
    Teredo,
    Ayiya,
    L2tp,
    Lisp,
    VxlanGpe,
    Tzsp,
    EtherIp,
    /// IEEE 802.11 data frame; whether its header is padded to words, and whether the card has decrypted it.
    Wifi {
        padded: bool,
        opened: bool,
    },
    /// An AAL5 PDU: LLC/SNAP, bridged, or IP at once (RFC 2684, Fore IP).
    Aal5,
}

impl Layer {
    /// Its name in a path; `None` for what is no header of its own.
    fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Ethernet => "eth",
            Self::Vlan => "vlan",
            Self::Backbone => "pbb",
            Self::FabricPath => "fabricpath",
            Self::Metadata => "cmd",
            Self::Hsr => "hsr",
            Self::Macsec => "macsec",
            Self::Nsh => "nsh",
            Self::Trill => "trill",
            Self::Llc => "llc",
            Self::Ipv4 => "ip",
            Self::Ipv6 => "ipv6",
            Self::IpProtocol(tcp::PROTOCOL) => "tcp",
            Self::Fragment(_) => "fragments",
            Self::Ppp => "ppp",
            Self::Pppoe => "pppoe",
            Self::Mpls => "mpls",
            Self::Gre => "gre",
            Self::Erspan2 { .. } | Self::Erspan3 => "erspan",
            Self::Wccp => "wccp",
            Self::Udp => "udp",
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::Gtp => "gtp",
            Self::Teredo => "teredo",
            Self::Ayiya => "ayiya",
            Self::L2tp => "l2tp",
            Self::Lisp => "lisp",
            Self::VxlanGpe => "vxlan-gpe",
            Self::Tzsp => "tzsp",
            Self::EtherIp => "etherip",
            Self::Wifi { .. } => "802.11",
            Self::Aal5 => "aal5",
            Self::EtherType(_) | Self::Ip | Self::IpProtocol(_) | Self::Hdlc => return None,
        })
    }
}

/// The named layers of one frame, outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Path {
    names: [Option<&'static str>; MAX_LAYERS],
    len: usize,
}

impl Path {
    #[inline]
    pub(super) fn push(&mut self, layer: Layer) {
        if let (Some(name), Some(place)) = (layer.name(), self.names.get_mut(self.len)) {
            *place = Some(name);
            self.len += 1;
        }
    }

    fn text(&self) -> String {
        self.names.iter().flatten().copied().collect::<Vec<_>>().join("/")
    }
}

/// Number of the path that most frames have, `eth/ip/tcp`: known without looking.
pub(super) const ETHERNET_IP_TCP: u16 = 0;
/// What a path is called once there are more than 65,535: only a hostile capture has so many.
const MANY: &str = "…";
const MAX_PATHS: usize = u16::MAX as usize;

/// Names of paths by their numbers; grows while a capture is read, and is read on another thread.
#[derive(Clone, Debug)]
pub struct PathNames(Arc<Mutex<Vec<String>>>);

impl Default for PathNames {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(vec!["eth/ip/tcp".into()])))
    }
}

impl PathNames {
    /// The names so far.
    #[must_use]
    pub fn so_far(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, name: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    }
}

/// Gives each path a number.
#[derive(Debug)]
pub(super) struct Paths {
    /// In the order of their numbers.
    known: Vec<Path>,
    latest: usize,
    pub(super) names: PathNames,
}

impl Default for Paths {
    fn default() -> Self {
        let mut usual = Path::default();
        for layer in [Layer::Ethernet, Layer::Ipv4, Layer::IpProtocol(tcp::PROTOCOL)] {
            usual.push(layer);
        }
        Self { known: vec![usual], latest: usize::from(ETHERNET_IP_TCP), names: PathNames::default() }
    }
}

impl Paths {
    pub(super) fn number(&mut self, path: &Path) -> u16 {
        if self.known.get(self.latest) != Some(path) {
            self.latest = self.known.iter().position(|known| known == path).unwrap_or_else(|| self.add(path));
        }
        self.latest as u16
    }

    #[cold]
    fn add(&mut self, path: &Path) -> usize {
        if self.known.len() + 1 < MAX_PATHS {
            self.known.push(*path);
            self.names.add(path.text());
        } else if self.known.len() + 1 == MAX_PATHS {
            self.known.push(Path::default());
            self.names.add(MANY.into());
        }
        self.known.len() - 1
    }
}
