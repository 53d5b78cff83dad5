//! The program as its user meets it: started as a process, judged by what it prints, where it
//! listens and how it ends.

#[cfg(test)]
mod it {
    mod command_line;
    mod demo_end_to_end;
    mod demo_parts;
    mod finished;
    mod otlp_sink;
    mod own_spans;
    mod program;
    mod start_up;
}
