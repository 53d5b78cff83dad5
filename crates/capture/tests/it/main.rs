//! The whole crate at work: on a real capture file, and live on the loopback device.
//!
//! The tests called `needs_cap_net_raw_...` fail without that privilege, unless `SKEWTAP_NOT_RUN`
//! names a file to list them in.

#[cfg(test)]
mod libcurl_capture;
#[cfg(test)]
#[cfg(feature = "live")]
mod live_loopback;
