//! The files below dashboards/ and docker-compose.yml: that the programs they are for accept them,
//! that their queries find what a running system exposes, and that an alert reaches its receiver.

#[cfg(test)]
mod dashboards {
    mod alert_delivery;
    mod alertmanager;
    mod compose_file;
    mod deadline;
    mod expressions;
    mod go_server;
    mod grafana_files;
    mod http;
    mod live_queries;
    #[path = "../it/program.rs"]
    mod program;
    mod prometheus;
    mod receiver;
    mod rule_files;
    mod shipped;
    mod speed_up;
    mod traffic;
}
