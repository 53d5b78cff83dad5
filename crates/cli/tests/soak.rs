//! The proxy under full load, with clients that break off and a server that fails at random: nothing
//! leaks, and there is one record for each exchange.
//!
//! It lasts 20 seconds, or as long as `SKEWTAP_SOAK_SECONDS` says; `make soak` takes five minutes.

#[cfg(test)]
mod soak {
    mod chance;
    mod clients;
    mod origin;
    mod proxy;
    mod run;
    mod sink;
}
