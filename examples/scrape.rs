//! What Prometheus asks for: a publisher's figures over HTTP.
//!
//! `cargo run --features metrics --example scrape`, then `curl http://127.0.0.1:9091/metrics`. Addresses of your own come as
//! arguments: the publisher's endpoint, then the one that answers; a number behind them ends it after so many scrapes. A
//! master that installs a recorder of the `metrics` facade already needs the line with `record` only.

use kv_events::{Config, MediaSet, Object, Publisher};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const BACKEND: &str = "scrape-example";

fn answer(mut stream: TcpStream, publisher: &Publisher, figures: &PrometheusHandle) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut request = BufReader::new(stream.try_clone()?).lines();
    while request.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    publisher.status().record(BACKEND);
    let body = figures.render();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n\r\n{body}")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().unwrap_or("tcp://127.0.0.1:0".into());
    let address = arguments.next().unwrap_or("127.0.0.1:9091".into());
    let limit = arguments.next().map_or(Ok(usize::MAX), |limit| limit.parse())?;
    let figures = PrometheusBuilder::new().install_recorder()?;
    let publisher = Publisher::start(Config::new(endpoint, BACKEND))?;
    publisher.committed(&Object::new("demo", "block-1"), MediaSet::CPU);
    let listener = TcpListener::bind(&address).map_err(|error| format!("{address}: {error}"))?;
    println!("figures at http://{}/metrics", listener.local_addr()?);
    for stream in listener.incoming().take(limit) {
        if let Err(error) = answer(stream?, &publisher, &figures) {
            eprintln!("a scrape was not answered: {error}");
        }
    }
    Ok(())
}
