//! The collector from outside: real sockets, a real store, a real end by force.

#[cfg(test)]
mod it {
    mod api;
    mod decoding;
    mod described;
    mod durability;
    mod full_disk;
    mod listening;
    mod matching;
    mod receiving;
    mod running;
    mod samples;
    mod starting;
}
