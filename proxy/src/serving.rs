//! What connections are served by: the settings, with what was read for them. Replaced as one, so
//! that no connection is served by halves of two.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;

use crate::authority::Authority;
use crate::config::{Config, Route};
use crate::proxy::StartError;
use crate::target::{Router, Target};
use crate::tls::{self, Clients, Offer, TlsError, TlsSettings};

/// Settings in use.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) config: Arc<Config>,
    pub(crate) router: Arc<Router>,
    /// `None` when clients do not speak TLS to the proxy.
    pub(crate) tls_server: Option<Arc<ServerConfig>>,
    pub(crate) tls_clients: Arc<Clients>,
    /// For each route, where it has certificates of its own.
    pub(crate) route_clients: Arc<[Option<Clients>]>,
    /// `None` when nothing is intercepted.
    pub(crate) authority: Option<Arc<Authority>>,
}

impl Serving {
    /// Checks the settings and loads all certificates that are certain to be needed, so that what
    /// is wrong shows at once. `own` is where the proxy listens.
    ///
    /// # Errors
    /// The settings, a certificate or the authority cannot be used.
    pub(crate) async fn load(config: Config, own: &[SocketAddr]) -> Result<Self, StartError> {
        config.check().map_err(StartError::Config)?;
        let (tls_server, tls_clients) = load_tls(&config).await.map_err(StartError::Tls)?;
        let route_clients = load_routes(&config).await.map_err(StartError::Tls)?;
        let intercept = config.intercept.as_ref();
        let authority = intercept.map(|it| Authority::load(&it.authority, &it.hosts));
        Ok(Self {
            router: Arc::new(Router::new(&config, own)),
            config: Arc::new(config),
            tls_server,
            tls_clients: Arc::new(tls_clients),
            route_clients: route_clients.into(),
            authority: authority.transpose()?.map(Arc::new),
        })
    }

    /// What connections under TLS to `target` are made with.
    pub(crate) fn clients_for(&self, target: &Target) -> &Clients {
        let of_route = target
            .route
            .and_then(|number| self.route_clients.get(number));
        let of_route = of_route.and_then(Option::as_ref);
        of_route.unwrap_or(&self.tls_clients)
    }
}

async fn load_tls(config: &Config) -> Result<(Option<Arc<ServerConfig>>, Clients), TlsError> {
    let settings = &config.tls;
    let server = settings.server.as_ref().map(tls::server_config);
    let clients = Clients::new(settings.clone());
    let upstreams = config.upstream.iter();
    let general = config.routes.iter().filter(|route| !has_own_tls(route));
    let mut upstreams = upstreams.chain(general.map(|route| &route.upstream));
    if upstreams.any(|url| url.scheme() == "https")
        || settings.upstream_ca.is_some()
        || settings.upstream_identity.is_some()
    {
        clients.config(Offer::Either).await?;
    }
    Ok((server.transpose()?.map(Arc::new), clients))
}

async fn load_routes(config: &Config) -> Result<Vec<Option<Clients>>, TlsError> {
    let mut all = Vec::with_capacity(config.routes.len());
    for route in &config.routes {
        let clients = has_own_tls(route).then(|| Clients::new(settings_of(route, &config.tls)));
        if let Some(clients) = &clients {
            clients.config(Offer::Either).await?;
        }
        all.push(clients);
    }
    Ok(all)
}

const fn has_own_tls(route: &Route) -> bool {
    route.upstream_ca.is_some() || route.upstream_identity.is_some()
}

fn settings_of(route: &Route, general: &TlsSettings) -> TlsSettings {
    let Route {
        upstream_ca,
        upstream_identity,
        ..
    } = route.clone();
    TlsSettings {
        upstream_ca: upstream_ca.or_else(|| general.upstream_ca.clone()),
        upstream_identity: upstream_identity.or_else(|| general.upstream_identity.clone()),
        ..TlsSettings::default()
    }
}
