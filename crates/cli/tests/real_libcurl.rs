//! Real software that sleeps blind, and the same software repaired, through the real proxy and
//! collector: the sweep of delays recorded in lab/libcurl says which calls lag.

#[cfg(test)]
mod real_libcurl {
    #[path = "../it/program.rs"]
    mod program;
    mod run_gate;
    mod sweep;
    mod system;
}
