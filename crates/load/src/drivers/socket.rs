//! Sockets as all drivers open them.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// A TCP socket for a connection to `target`, not connected yet: non-blocking, without Nagle's algorithm, bound to an
/// address if there is one. The port is chosen when it connects, so that each address has all ports for each target.
///
/// # Errors
/// Error of the kernel, such as that the machine does not have the address.
pub(crate) fn open(target: &SocketAddr, from: Option<IpAddr>) -> Result<OwnedFd, Errno> {
    let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    set_tcp_nodelay(&socket, true)?;
    if let Some(address) = from {
        setsockopt(&socket, IpBindAddressNoPort, &true).map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
        bind(&socket, &SocketAddr::new(address, 0))?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn a_server_sees_the_address_that_was_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        for last in [2, 3] {
            let address = IpAddr::from(Ipv4Addr::new(127, 0, 0, last));
            let socket = open(&target, Some(address)).unwrap();
            let unbound = rustix::net::getsockname(&socket).unwrap();
            assert_eq!(SocketAddr::try_from(unbound).unwrap(), SocketAddr::new(address, 0), "no port is taken yet");
            let _ = rustix::net::connect(&socket, &target);
            let (_, peer) = listener.accept().unwrap();
            assert_eq!(peer.ip(), address);
            assert!(TcpStream::from(socket).nodelay().unwrap());
        }
    }

    #[test]
    fn an_address_of_another_machine_is_refused() {
        let target = ([127, 0, 0, 1], 9).into();
        assert_eq!(open(&target, Some([192, 0, 2, 1].into())).unwrap_err(), Errno::ADDRNOTAVAIL);
    }
}
