//! The collector from outside: real sockets, a real store, a real end by force.

#[cfg(test)]
mod it {
    mod api;
    mod decoding;
    mod described;
    mod durability;
    mod listening;
    mod matching;
    mod receiving;
    mod running;
    mod samples;
    mod starting;
}
