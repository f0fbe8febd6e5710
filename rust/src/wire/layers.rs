//! The layers that the dissector can read, and the paths of layers in frames.

use std::sync::{Arc, Mutex, PoisonError};

use super::{tcp, vj};

/// Maximum number of headers in one frame. Real frames have fewer than ten, even with nested tunnels.
pub(super) const MAX_LAYERS: usize = 24;

/// The position of a fragment in its IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentPlace {
    pub identification: u32,
    /// Protocol number of the packet's content.
    pub protocol: u8,
    /// Offset in the packet, in bytes.
    pub offset: u16,
    /// Whether more fragments follow.
    pub more: bool,
}

/// The kind of the next header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Ethernet,
    /// The header with this Ethernet type.
    EtherType(u16),
    /// IEEE 802.1Q and 802.1ad.
    Vlan,
    /// IEEE 802.1ah: provider backbone.
    Backbone,
    /// Cisco `FabricPath`.
    FabricPath,
    /// Cisco metadata (CMD) with a security group tag.
    Metadata,
    Hsr,
    Macsec,
    Nsh,
    Trill,
    /// IEEE 802.2 LLC, with or without SNAP.
    Llc,
    /// IPv4 or IPv6, depending on the version in the first four bits.
    Ip,
    Ipv4,
    Ipv6,
    /// The header with this IP protocol number or next-header number.
    IpProtocol(u8),
    Fragment(FragmentPlace),
    /// HDLC framing of PPP or Cisco. `sent` tells whether the capturing host sent the frame, if the link type records
    /// the direction.
    Hdlc {
        sent: Option<bool>,
    },
    /// PPP (RFC 1661), with or without HDLC address and control. `sent` tells whether the capturing host sent the
    /// frame, if the link type records the direction.
    Ppp {
        sent: Option<bool>,
    },
    /// TCP/IP with Van Jacobson header compression (RFC 1144).
    VanJacobson(vj::Form),
    /// PPP over Ethernet (RFC 2516).
    Pppoe,
    /// MPLS label stack (RFC 3032).
    Mpls,
    /// GRE (RFC 2784, RFC 2890, RFC 2637).
    Gre,
    /// ERSPAN type I, which has no header, or type II. A sequence number in the GRE header (`sequenced`) announces type
    /// II.
    Erspan2 {
        sequenced: bool,
    },
    Erspan3,
    Wccp,
    /// UDP, whose payload is possibly a tunnel.
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
    /// IEEE 802.11 data frame. If `padded`, the header is padded to a multiple of four bytes. If `opened`, the card has
    /// decrypted the frame.
    Wifi {
        padded: bool,
        opened: bool,
    },
    /// The content of an AAL5 PDU: LLC/SNAP, a bridged frame, PPP or IP (RFC 2684, Fore IP).
    Aal5,
}

impl Layer {
    /// An IEEE 802.11 frame in its transmitted form.
    pub(super) const WIFI: Self = Self::Wifi { padded: false, opened: false };
    /// An IEEE 802.11 frame that the card has decrypted, although its header still says that it is encrypted.
    pub(super) const WIFI_OPENED: Self = Self::Wifi { padded: false, opened: true };
    /// HDLC framing without a recorded direction.
    pub(super) const HDLC: Self = Self::Hdlc { sent: None };
    /// PPP without a recorded direction.
    pub(super) const PPP: Self = Self::Ppp { sent: None };

    /// The name of the layer in a path, or `None` if a later layer is more specific.
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
            Self::Ppp { .. } => "ppp",
            Self::VanJacobson(_) => "vj",
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
            Self::EtherType(_) | Self::Ip | Self::IpProtocol(_) | Self::Hdlc { .. } => return None,
        })
    }
}

/// The named layers of one frame, from the outermost to the innermost.
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

/// Number of the path `eth/ip/tcp`. Most frames have this path, so its number is fixed.
pub(super) const ETHERNET_IP_TCP: u16 = 0;
/// The name of all paths after the first 65,535. Only a malicious capture has so many paths.
const MANY: &str = "…";
const MAX_PATHS: usize = u16::MAX as usize;

/// The names of paths, indexed by path number. The dissector adds names while another thread reads them.
#[derive(Clone, Debug)]
pub struct PathNames(Arc<Mutex<Vec<String>>>);

impl Default for PathNames {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(vec!["eth/ip/tcp".into()])))
    }
}

impl PathNames {
    /// The names known so far, in order of their numbers.
    #[must_use]
    pub fn so_far(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, name: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    }
}

#[derive(Debug)]
pub(super) struct Paths {
    /// The known paths in order of their numbers.
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
