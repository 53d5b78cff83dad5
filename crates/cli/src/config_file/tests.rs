use clap::{CommandFactory as _, FromArgMatches as _};

use super::*;
use crate::args::{Args, Command as Subcommand, LogFormat};

/// What the program would do with `text` as its file.
fn with_file(text: &str, arguments: &[&str]) -> Args {
    let file = parse(text, &Args::command()).unwrap();
    let program = file.as_usual_values(Args::command());
    let matches = program.try_get_matches_from(arguments).unwrap();
    Args::from_arg_matches(&matches).unwrap()
}

/// All faults of `text`, one a line.
fn faults_of(text: &str) -> String {
    let faults = parse(text, &Args::command()).unwrap_err();
    Faults::new(Path::new("skewtap.toml"), text, faults).to_string()
}

#[test]
fn the_file_stands_behind_flags_and_before_usual_values() {
    let file = "
        log-format = 'json'
        [proxy]
        listen = '127.0.0.1:1'
        workers = 3
        no-capture = true
        [collector]
        settle = '1500ms'
    ";
    let args = with_file(file, &["skewtap", "proxy", "--listen", "127.0.0.1:2"]);
    assert_eq!(args.log.log_format, LogFormat::Json);
    let Subcommand::Proxy(proxy) = args.command else {
        panic!("the proxy was asked for")
    };
    assert_eq!(proxy.listen, ["127.0.0.1:2".parse().unwrap()]);
    assert_eq!(proxy.workers, 3);
    assert!(proxy.no_capture && !proxy.no_queues);
    let args = with_file(file, &["skewtap", "collector"]);
    let Subcommand::Collector(collector) = args.command else {
        panic!("the collector was asked for")
    };
    assert_eq!(collector.settle, std::time::Duration::from_millis(1500));
    assert_eq!(collector.http, "127.0.0.1:4390".parse().unwrap());
}

#[test]
fn all_faults_are_told_together_each_with_its_line() {
    let text = "log-fromat = 'json'
[proxy]
lisen = '127.0.0.1:1'
workers = 'many'
no_capture = true
no-queues = 1
upstream = ['http://a', 'http://b']
[colector]
store = 'x'
[collector]
settle = '3'
";
    let told = faults_of(text);
    let lines: Vec<&str> = told.lines().collect();
    let expected = [
        "skewtap.toml:1: unknown key log-fromat; did you mean log-format?",
        "skewtap.toml:3: unknown key lisen in [proxy]; did you mean listen?",
        "skewtap.toml:4: workers = \"many\": ",
        "skewtap.toml:5: unknown key no_capture in [proxy]; did you mean no-capture?",
        "skewtap.toml:6: no-queues is a number",
        "skewtap.toml:7: upstream is a list",
        "skewtap.toml:8: unknown table [colector]; did you mean collector?",
        "skewtap.toml:11: settle = \"3\": write a time from 1s to 5m",
    ];
    assert_eq!(lines.len(), expected.len(), "{told}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
    }
}

#[test]
fn routes_are_read_in_their_order_with_what_the_proxy_has_beside_them() {
    let text = "
        [proxy]
        workers = 2
        [[proxy.route]]
        host = '*.example'
        upstream = 'https://127.0.0.1:9001'
        upstream-ca = 'ca.pem'
        [[proxy.route]]
        path = '/api'
        upstream = 'unix:/run/api.sock'
    ";
    let file = parse(text, &Args::command()).unwrap();
    assert_eq!(file.len(), 3);
    let routes = file.into_routes();
    let told: Vec<_> = routes
        .iter()
        .map(|route| {
            let (host, path) = (route.host.as_deref(), route.path.as_deref());
            (host, path, route.upstream.as_str())
        })
        .collect();
    assert_eq!(
        told,
        [
            (Some("*.example"), None, "https://127.0.0.1:9001/"),
            (None, Some("/api"), "unix:/run/api.sock"),
        ]
    );
    assert_eq!(routes[0].upstream_ca, Some("ca.pem".into()));
}

#[test]
fn faults_of_routes_are_told_with_their_lines() {
    let told = faults_of(
        "[[proxy.rout]]
[[proxy.route]]
hosts = 'a'
upstream = 'http://a'
[[proxy.route]]
host = 'a:80'
path = 'api'
upstream = 'a'
[[proxy.route]]
host = 'a'
[[proxy.route]]
upstream = 'http://a'
upstream-cert = 'cert.pem'
[[proxy.route]]
host = 'b'
upstream = 'http://a'
[[proxy.route]]
host = 'B'
upstream = 'http://b'
",
    );
    let lines: Vec<&str> = told.lines().collect();
    let expected = [
        "skewtap.toml:1: unknown key rout in [proxy]; did you mean route?",
        "skewtap.toml:3: unknown key hosts in [[proxy.route]]; did you mean host?",
        "skewtap.toml:6: host = \"a:80\": it must be a name",
        "skewtap.toml:7: path = \"api\": it must begin with /",
        "skewtap.toml:8: upstream = \"a\": ",
        "skewtap.toml:9: [[proxy.route]] needs upstream",
        "skewtap.toml:11: [[proxy.route]]: ",
        "skewtap.toml:17: another [[proxy.route]] before it has the same host and path",
    ];
    assert_eq!(lines.len(), expected.len(), "{told}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
    }
    assert!(faults_of("[proxy]\nroute = 'x'").contains("write [[proxy.route]]"));
    assert!(faults_of("[proxy]\nroute = ['x']").contains("write [[proxy.route]]"));
}

#[test]
fn a_key_without_its_table_is_told_where_it_belongs() {
    assert_eq!(
        faults_of("upstream = 'http://a'"),
        "skewtap.toml:1: unknown key upstream outside a table; put it under [proxy]"
    );
}

#[test]
fn text_that_is_no_toml_is_told_with_its_line() {
    let told = faults_of("[proxy]\nlisten = \n");
    assert!(told.starts_with("skewtap.toml:2: "), "{told}");
}

#[test]
fn what_people_do_not_see_cannot_be_set() {
    for text in [
        "[proxy]\nend-with-stdin = true",
        "[demo-origin]\nlisten = 'x'",
        "config = 'other.toml'",
        "help = true",
    ] {
        assert!(faults_of(text).contains("unknown"), "{text}");
    }
}

#[test]
fn the_example_holds_every_key_and_no_fault_with_or_without_its_comments() {
    let program = Args::command();
    let example = reference::example(&program);
    assert_eq!(parse(&example, &program).unwrap().settings, []);
    // With the values that have a usual one taken in.
    let taken_in: String = example
        .lines()
        .filter_map(|line| {
            let setting = line.strip_prefix("# ").filter(|line| {
                let value = line.split_once(" = ");
                value.is_some_and(|(key, value)| {
                    !key.contains(' ') && !["\"\"", "[\"\"]"].contains(&value)
                })
            });
            setting.or_else(|| line.starts_with('[').then_some(line))
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    let file = parse(&taken_in, &program).unwrap();
    assert!(file.settings.len() > 10, "{taken_in}");
}

#[test]
fn the_file_is_found_wherever_it_is_named() {
    let program = Args::command();
    for arguments in [
        &["skewtap", "--config", "a.toml", "proxy"][..],
        &["skewtap", "proxy", "--config", "a.toml"],
        &["skewtap", "collector", "--store", "x", "--config=a.toml"],
    ] {
        let named = named_by(&program, arguments.iter().map(OsString::from));
        assert_eq!(named, Some(PathBuf::from("a.toml")), "{arguments:?}");
    }
    for arguments in [
        &["skewtap", "proxy"][..],
        &["skewtap", "--help"],
        &["skewtap", "--config", "a.toml", "config", "check"],
    ] {
        let named = named_by(&program, arguments.iter().map(OsString::from));
        assert_eq!(named, None, "{arguments:?}");
    }
}

#[test]
fn the_configuration_page_is_the_one_that_is_written_from_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = reference::page(&Args::command());
    if std::env::var_os("SKEWTAP_WRITE_DOCS").is_some() {
        fs::write(path, &page).unwrap();
    }
    assert!(
        fs::read_to_string(path).unwrap_or_default() == page,
        "docs/configuration.md is out of date; write it anew with \
         SKEWTAP_WRITE_DOCS=1 cargo test -p skewtap-cli configuration_page"
    );
}
