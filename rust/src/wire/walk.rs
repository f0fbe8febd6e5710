//! Reads the headers of a frame one after the other, up to TCP or UDP.

use super::cursor::{Cursor, Stop};
use super::fragments::Fragment;
use super::halt::Halt;
use super::layers::{Layer, MAX_LAYERS, Path};
use super::segment::{IpEndpoints, IpFacts};
use super::{atm, ethernet, ip, link, tcp, tunnel, udp, wifi};

/// The innermost IP header, which is followed by TCP or UDP.
pub(super) struct Innermost {
    pub ip: IpFacts,
    pub endpoints: IpEndpoints,
    /// Source and destination port of UDP, or `None` for TCP, whose header is read later.
    pub udp_ports: Option<(u16, u16)>,
}

/// Reads headers from `layer` inwards until TCP, or until UDP without a tunnel. Records the layers in `path`.
pub(super) fn walk<'a>(mut layer: Layer, cursor: &mut Cursor<'a>, path: &mut Path) -> Result<Innermost, Halt<'a>> {
    let (mut ip, mut endpoints) = (IpFacts::default(), IpEndpoints::default());
    for _ in 0..MAX_LAYERS {
        path.push(layer);
        layer = match layer {
            Layer::Ethernet => ethernet::ethernet(cursor)?,
            Layer::EtherType(ether_type) => ethernet::ether_type(ether_type)?,
            Layer::Vlan => ethernet::vlan(cursor)?,
            Layer::Backbone => tunnel::backbone(cursor)?,
            Layer::FabricPath => tunnel::fabric_path(cursor)?,
            Layer::Metadata => tunnel::metadata(cursor)?,
            Layer::Hsr => tunnel::hsr(cursor)?,
            Layer::Macsec => tunnel::macsec(cursor)?,
            Layer::Nsh => tunnel::nsh(cursor)?,
            Layer::Trill => tunnel::trill(cursor)?,
            Layer::Llc => ethernet::llc(cursor)?,
            Layer::Ip => ip::any(cursor)?,
            Layer::Ipv4 => ip::v4(cursor, &mut ip, &mut endpoints)?,
            Layer::Ipv6 => ip::v6(cursor, &mut ip, &mut endpoints)?,
            Layer::Hdlc { sent } => link::hdlc(sent, cursor)?,
            Layer::Ppp { sent } => tunnel::ppp(sent, cursor)?,
            Layer::VanJacobson(form) => return Err(Halt::VanJacobson(form)),
            Layer::Pppoe => tunnel::pppoe(cursor)?,
            Layer::Mpls => tunnel::mpls(cursor)?,
            Layer::Gre => tunnel::gre(cursor)?,
            Layer::Erspan2 { sequenced } => tunnel::erspan_2(sequenced, cursor)?,
            Layer::Erspan3 => tunnel::erspan_3(cursor)?,
            Layer::Wccp => tunnel::wccp(cursor)?,
            Layer::Udp => match udp::udp(cursor)? {
                udp::Udp::Tunnel(layer) => layer,
                udp::Udp::Ports(ports) => return Ok(Innermost { ip, endpoints, udp_ports: Some(ports) }),
            },
            Layer::Vxlan => udp::vxlan(cursor)?,
            Layer::Geneve => udp::geneve(cursor)?,
            Layer::Gtp => udp::gtp_user(cursor)?,
            Layer::Teredo => udp::teredo(cursor)?,
            Layer::Ayiya => udp::ayiya(cursor)?,
            Layer::L2tp => udp::l2tp(cursor)?,
            Layer::Lisp => udp::lisp(cursor)?,
            Layer::VxlanGpe => udp::vxlan_gpe(cursor)?,
            Layer::Tzsp => link::tzsp(cursor)?,
            Layer::EtherIp => tunnel::ether_ip(cursor)?,
            Layer::Wifi { padded, opened } => wifi::data(padded, opened, cursor)?,
            Layer::Aal5 => atm::payload(cursor)?,
            Layer::IpProtocol(tcp::PROTOCOL) => return Ok(Innermost { ip, endpoints, udp_ports: None }),
            Layer::IpProtocol(protocol) => ip::protocol(protocol, cursor)?,
            Layer::Fragment(place) => {
                let (data, wire_bytes) = (cursor.data, cursor.wire_bytes);
                return Err(Halt::Fragment(Fragment { facts: ip, endpoints, place, data, wire_bytes }));
            }
        };
    }
    Err(Stop::TooDeep.into())
}
