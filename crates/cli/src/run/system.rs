//! What stands between a command and its breakdown: a forward proxy, or a reverse proxy for each
//! mapped port, and a collector unless one is running already.
//!
//! All of it runs in this very process. So it ends with it, and the command's process descends
//! from the one that samples it, which many systems make a condition for looking.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use skewtap_collector::Collector;
use skewtap_proxy::tls::TlsSettings;
use skewtap_proxy::{Config as ProxyConfig, Proxy};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::environment::SpanReceivers;
use super::relay;
use super::tally::Tally;
use super::trust::Trust;
use crate::api_client::ApiClient;
use crate::args::{Map, RunArgs};

/// Where spans are received: an address that is nobody else's, so that it can be kept from the
/// proxy without keeping anything else from it.
const RECEIVERS: Ipv4Addr = Ipv4Addr::new(127, 83, 75, 84);
/// How long exchanges that are open after the command's end may take to finish, and how long
/// their records may then take to be shipped.
const DRAIN: Duration = Duration::from_secs(3);
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// All parts at work.
pub(super) struct System {
    /// The forward proxy; there is none where ports are mapped, for a request must not pass two.
    pub(super) proxy: Option<SocketAddr>,
    /// Where the command's spans are to go.
    pub(super) receivers: SpanReceivers,
    /// The collector's API.
    pub(super) api: ApiClient,
    /// Every address at which one of the proxies is asked.
    pub(super) asked_at: Vec<String>,
    proxies: Vec<RunningProxy>,
    collector: Option<RunningCollector>,
}

struct RunningProxy {
    admin: ApiClient,
    stop: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
}

struct RunningCollector {
    stop: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
    /// Gone with the store in it.
    _temporary: Option<TempDir>,
}

/// The addresses of a collector.
struct CollectorAddresses {
    otlp: Url,
    receivers: SpanReceivers,
    /// Host and port of page and API.
    http: String,
}

impl System {
    /// Starts all parts; TLS is intercepted with what `trust` holds.
    ///
    /// # Errors
    /// A port or the store cannot be had.
    pub(super) async fn start(args: &RunArgs, trust: Option<&Trust>) -> anyhow::Result<Self> {
        let (addresses, collector) = match &args.collector {
            Some(page) => (running_already(page, args).await?, None),
            None => start_collector(args).await.map(|(a, c)| (a, Some(c)))?,
        };
        let mut started = Vec::new();
        if args.map.is_empty() {
            let forward = ProxyConfig {
                listen: vec![ANY_PORT],
                intercept: trust.map(Trust::interception),
                tls: TlsSettings {
                    upstream_ca: args.upstream_ca.clone(),
                    ..TlsSettings::default()
                },
                ..proxy_config(&addresses.otlp)
            };
            let proxy = start_proxy(forward).await;
            started.push(proxy.context("cannot start the proxy")?);
        }
        for map in &args.map {
            started.push(start_mapped(map, &addresses.otlp).await?);
        }
        let (asked_at, proxies): (Vec<SocketAddr>, Vec<_>) = started.into_iter().unzip();
        Ok(Self {
            proxy: asked_at.first().copied().filter(|_| args.map.is_empty()),
            asked_at: asked_at.iter().map(ToString::to_string).collect(),
            receivers: addresses.receivers,
            api: ApiClient::new(addresses.http),
            proxies,
            collector,
        })
    }

    /// What the proxies have counted so far.
    ///
    /// # Errors
    /// A proxy does not answer.
    pub(super) async fn tally(&self) -> anyhow::Result<Tally> {
        let mut sum = Tally::default();
        for proxy in &self.proxies {
            sum.add(&proxy.admin.metrics().await?);
        }
        Ok(sum)
    }

    /// Ends the proxies; then every record that will ever come has been shipped.
    ///
    /// # Errors
    /// A proxy broke.
    pub(super) async fn end_proxies(&mut self) -> anyhow::Result<()> {
        for proxy in &self.proxies {
            proxy.stop.cancel();
        }
        for proxy in self.proxies.drain(..) {
            proxy.serving.await.context("the proxy broke")??;
        }
        Ok(())
    }

    /// Ends what is left.
    ///
    /// # Errors
    /// The collector broke.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        self.end_proxies().await?;
        if let Some(collector) = self.collector {
            collector.stop.cancel();
            collector.serving.await.context("the collector broke")??;
        }
        Ok(())
    }
}

async fn start_mapped(map: &Map, otlp: &Url) -> anyhow::Result<(SocketAddr, RunningProxy)> {
    let Map { port, server } = map;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
    // The proxy would name a flag that there is none of here.
    TcpListener::bind(listen)
        .with_context(|| format!("cannot listen on {listen}: choose another port with --map"))?;
    let mapped = ProxyConfig {
        listen: vec![listen],
        upstream: Some(server.clone()),
        forward: false,
        ..proxy_config(otlp)
    };
    start_proxy(mapped)
        .await
        .with_context(|| format!("cannot start the proxy for --map {port}={server}"))
}

async fn start_proxy(config: ProxyConfig) -> anyhow::Result<(SocketAddr, RunningProxy)> {
    let proxy = Proxy::bind(config).await?;
    let addresses = proxy.addresses();
    let admin = addresses.admin.context("the proxy has no admin address")?;
    let traffic = addresses.traffic.first().copied();
    let traffic = traffic.context("the proxy has no address")?;
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let serving =
        tokio::spawn(async move { proxy.serve(stopped).await.context("the proxy broke") });
    let running = RunningProxy {
        admin: ApiClient::new(admin),
        stop,
        serving,
    };
    Ok((traffic, running))
}

fn proxy_config(otlp: &Url) -> ProxyConfig {
    ProxyConfig {
        admin: Some(ANY_PORT),
        otlp: Some(otlp.clone()),
        drain_timeout: DRAIN,
        ..ProxyConfig::default()
    }
}

async fn start_collector(args: &RunArgs) -> anyhow::Result<(CollectorAddresses, RunningCollector)> {
    let (store, temporary) = store(args)?;
    let receivers = SocketAddr::new(receivers_host(), 0);
    let mut config = skewtap_collector::Config {
        otlp_grpc: receivers,
        otlp_http: receivers,
        http: ANY_PORT,
        ..skewtap_collector::Config::new(store)
    };
    config.matcher.settle = args.settle();
    config.matcher.linger = config.matcher.linger.min(args.settle());
    let collector = Collector::bind(config)
        .await
        .context("cannot start the collector")?;
    let listening = collector.addresses();
    let addresses = CollectorAddresses {
        otlp: origin(listening.otlp_grpc)?,
        receivers: SpanReceivers {
            grpc: origin(listening.otlp_grpc)?,
            http: origin(listening.otlp_http)?,
        },
        http: listening.http.to_string(),
    };
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let serving = tokio::spawn(async move {
        let served = collector.serve(stopped).await;
        served.context("the collector broke")
    });
    let running = RunningCollector {
        stop,
        serving,
        _temporary: temporary,
    };
    Ok((addresses, running))
}

fn store(args: &RunArgs) -> anyhow::Result<(PathBuf, Option<TempDir>)> {
    if let Some(kept) = &args.store {
        return Ok((kept.clone(), None));
    }
    let temporary = tempfile::Builder::new()
        .prefix("skewtap-run-")
        .tempdir()
        .context("cannot make a temporary directory")?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

async fn running_already(page: &Url, args: &RunArgs) -> anyhow::Result<CollectorAddresses> {
    let otlp = match &args.otlp {
        Some(url) => url.clone(),
        None => at_port(page, 4317)?,
    };
    let otlp_http = match &args.otlp_http {
        Some(url) => url.clone(),
        None => at_port(page, 4318)?,
    };
    let relayed = async |to: &Url| {
        let address = relay::start(receivers_host(), to).await;
        let address = address.with_context(|| format!("cannot pass spans on to {to}"))?;
        origin(address)
    };
    let http = page.authority().to_owned();
    let alive = ApiClient::new(&http).metrics().await;
    alive.with_context(|| format!("no collector at {page}"))?;
    Ok(CollectorAddresses {
        receivers: SpanReceivers {
            grpc: relayed(&otlp).await?,
            http: relayed(&otlp_http).await?,
        },
        otlp,
        http,
    })
}

/// The address for receivers, where the system lets anyone listen there.
fn receivers_host() -> IpAddr {
    let own = TcpListener::bind((RECEIVERS, 0));
    IpAddr::V4(own.map_or(Ipv4Addr::LOCALHOST, |_| RECEIVERS))
}

fn at_port(page: &Url, port: u16) -> anyhow::Result<Url> {
    let mut url = page.clone();
    let set = url.set_port(Some(port));
    set.map_err(|()| anyhow::anyhow!("{page} cannot have a port"))?;
    Ok(url)
}

fn origin(address: SocketAddr) -> anyhow::Result<Url> {
    Ok(Url::parse(&format!("http://{address}"))?)
}
