//! The collector from outside: real sockets, a real store, a real end by force.

#[cfg(test)]
mod it {
    mod api;
    mod decoding;
    mod described;
    mod durability;
    mod exporting;
    mod fake_backend;
    mod full_disk;
    mod in_parts;
    mod listening;
    mod making_room;
    mod matching;
    mod proxy_drops;
    mod receiving;
    mod reopening;
    mod running;
    mod samples;
    mod sdks;
    mod securing;
    mod shared_ids;
    mod starting;
    mod webhooks;
    mod writing_back;
}
