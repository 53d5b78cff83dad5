//! Real clients and real servers with the proxy between them, in each mode: bodies of every kind
//! both ways, held against hashes that are known beforehand.
//!
//! Python's packages and Node's come with `make clients`.

#[cfg(test)]
mod matrix {
    mod bodies;
    mod certificates;
    mod clients;
    #[path = "../it/free_port.rs"]
    mod free_port;
    mod grpc;
    mod hyper_client;
    mod hyper_server;
    mod modes;
    mod processes;
    mod proxy;
    mod servers;
}
