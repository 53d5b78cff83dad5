//! The program as its user meets it: started as a process, judged by what it prints, where it
//! listens and how it ends.

#[cfg(test)]
mod it {
    mod authority;
    mod capture_overload;
    mod clock_step;
    mod command_line;
    mod configuration;
    mod delaying_server;
    mod demo_end_to_end;
    mod demo_parts;
    mod finished;
    mod free_port;
    mod late_names;
    mod measured_run;
    mod not_run;
    mod otlp_sink;
    mod own_names;
    mod own_spans;
    mod program;
    mod proxy_process;
    mod proxy_resilience;
    mod reload;
    mod routes;
    mod run_collector;
    mod run_command;
    mod run_intercepted;
    mod run_real_clients;
    mod run_stages;
    mod start_up;
    mod stepped_clock;
}
