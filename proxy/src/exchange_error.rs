//! Why the proxy cannot give the client the server's response.

use std::io;
use std::time::Duration;

use http::StatusCode;
use skewtap_core::exchange::Outcome;

use crate::authority::AuthorityError;
use crate::strict_head::HeadFault;
use crate::tls::TlsError;

/// Everything that keeps an exchange from its response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    /// A plain path, but the proxy has no upstream.
    #[error("no upstream is set, only requests for whole URLs are served")]
    NoUpstream,
    /// A plain path that no route fits.
    #[error("no route fits this host and path")]
    NoRoute,
    /// A whole URL, but forwarding is off.
    #[error("forwarding to the host in the URL is switched off")]
    ForwardOff,
    /// `CONNECT` without a host and a port.
    #[error("CONNECT needs a host and a port")]
    NoPort,
    /// A whole URL of another scheme than http and https.
    #[error("only http:// and https:// URLs are forwarded")]
    Scheme,
    /// The request's head can be read in two ways.
    #[error("the request's head is ambiguous")]
    Head(#[source] HeadFault),
    /// The request's body is not as its head announced it.
    #[error("the request's body is malformed")]
    Body,
    /// A client on another machine asks for what only this machine should reach.
    #[error("only clients on this machine may be led to its own addresses and its link's")]
    Forbidden,
    /// The request would come back to this proxy.
    #[error("the request is addressed to the proxy itself")]
    Loop,
    /// The server's name has no address.
    #[error("{host} cannot be resolved")]
    Name {
        /// The name.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// Nothing listens at the server's address.
    #[error("connection to the server refused")]
    Refused(#[source] io::Error),
    /// No connection, for another reason.
    #[error("no connection to the server")]
    Unreachable(#[source] io::Error),
    /// No connection to a server can be made as TLS is set.
    #[error("TLS cannot be spoken")]
    TlsSettings(#[source] TlsError),
    /// No certificate can be made in the server's place.
    #[error("TLS cannot be intercepted")]
    Authority(#[from] AuthorityError),
    /// The server and the proxy could not agree on TLS.
    #[error("no TLS connection to the server")]
    Tls(#[source] io::Error),
    /// No connection within the time allowed.
    #[error("no connection to the server within {0:?}")]
    ConnectTimeout(Duration),
    /// The connection broke before the response began.
    #[error("the server's connection broke")]
    Broken(#[source] HttpError),
    /// What the server sent is not HTTP, or not of the version that was agreed on.
    #[error("the server's answer is not HTTP")]
    Malformed(#[source] HttpError),
    /// The server takes no more streams on this connection, and did nothing about this one.
    #[error("the server is closing its connection")]
    Closing(#[source] HttpError),
    /// The server ended the stream before it had answered.
    #[error("the server reset the stream: {0}")]
    Reset(h2::Reason),
    /// `CONNECT` on a stream.
    #[error("tunnels through a stream of HTTP/2 are not supported; use HTTP/1.1 to the proxy")]
    TunnelInStream,
    /// The server left HTTP although the client had not offered that.
    #[error("the server switched protocols without being asked to")]
    Unasked,
    /// The client went away while sending.
    #[error("the client stopped sending")]
    ClientGone(#[source] HttpError),
}

/// What the HTTP library of either version says is wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// Of HTTP/1.
    #[error(transparent)]
    Http1(#[from] hyper::Error),
    /// Of HTTP/2.
    #[error(transparent)]
    Http2(#[from] h2::Error),
}

impl ExchangeError {
    /// Sorts an error of the connection to the server.
    pub(crate) fn from_hyper(error: hyper::Error) -> Self {
        if error.is_parse() {
            Self::Malformed(error.into())
        } else if error.is_user() {
            // The only thing handed to hyper that can fail is the client's body.
            Self::ClientGone(error.into())
        } else {
            Self::Broken(error.into())
        }
    }

    /// Sorts an error of a stream to the server, or of the connection that carries it.
    pub(crate) fn from_h2(error: h2::Error) -> Self {
        match error.reason() {
            Some(reason) if error.is_reset() && error.is_remote() => Self::Reset(reason),
            // With any other reason the server may have begun with the stream.
            Some(h2::Reason::NO_ERROR) if error.is_go_away() && error.is_remote() => {
                Self::Closing(error.into())
            }
            _ if error.is_library() => Self::Malformed(error.into()),
            _ => Self::Broken(error.into()),
        }
    }

    /// The status of the proxy's answer.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Head(HeadFault::Coding) => StatusCode::NOT_IMPLEMENTED,
            Self::NoUpstream | Self::NoPort | Self::Head(_) | Self::Body => StatusCode::BAD_REQUEST,
            Self::NoRoute => StatusCode::NOT_FOUND,
            Self::ForwardOff | Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Scheme | Self::TunnelInStream => StatusCode::NOT_IMPLEMENTED,
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::ConnectTimeout(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Name { .. }
            | Self::Refused(_)
            | Self::Unreachable(_)
            | Self::TlsSettings(_)
            | Self::Authority(_)
            | Self::Tls(_)
            | Self::Broken(_)
            | Self::Malformed(_)
            | Self::Closing(_)
            | Self::Reset(_)
            | Self::Unasked
            | Self::ClientGone(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// The value of the header `x-skewtap-reason` in the proxy's answer.
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::NoUpstream => "no-upstream",
            Self::NoRoute => "no-route",
            Self::ForwardOff => "forwarding-off",
            Self::NoPort => "no-port",
            Self::Scheme => "scheme-unsupported",
            Self::Head(_) => "ambiguous-head",
            Self::Body => "malformed-body",
            Self::Forbidden => "target-forbidden",
            Self::Loop => "loop",
            Self::Name { .. } => "upstream-name",
            Self::Refused(_) => "upstream-refused",
            Self::Unreachable(_) => "upstream-unreachable",
            Self::TlsSettings(_) => "upstream-tls-settings",
            Self::Authority(_) => "interception",
            Self::Tls(_) => "upstream-tls",
            Self::ConnectTimeout(_) => "upstream-connect-timeout",
            Self::Broken(_) => "upstream-broken",
            Self::Closing(_) => "upstream-closing",
            Self::Reset(_) => "upstream-reset",
            Self::TunnelInStream => "tunnel-in-stream",
            Self::Malformed(_) => "upstream-malformed",
            Self::Unasked => "upstream-switched",
            Self::ClientGone(_) => "client-gone",
        }
    }

    /// How the exchange ends.
    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::Head(_)
            | Self::Body
            | Self::Forbidden
            | Self::NoUpstream
            | Self::NoRoute
            | Self::ForwardOff
            | Self::NoPort
            | Self::Scheme
            | Self::TunnelInStream
            | Self::Loop => Outcome::Refused,
            Self::Name { .. }
            | Self::Refused(_)
            | Self::Unreachable(_)
            | Self::TlsSettings(_)
            | Self::Authority(_)
            | Self::Tls(_)
            | Self::ConnectTimeout(_) => Outcome::UpstreamUnreachable,
            Self::Broken(_) | Self::Closing(_) | Self::Reset(_) => Outcome::UpstreamBroken,
            Self::Malformed(_) | Self::Unasked => Outcome::UpstreamMalformed,
            Self::ClientGone(_) => Outcome::ClientGone,
        }
    }
}
