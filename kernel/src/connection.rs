//! The connection file: where the five sockets bind, and the key that signs messages.

use serde_json::Value;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    pub transport: String,
    pub ip: String,
    pub shell_port: u16,
    pub iopub_port: u16,
    pub stdin_port: u16,
    pub control_port: u16,
    pub hb_port: u16,
    pub key: String,
}

impl Connection {
    /// # Errors
    /// A sentence that names the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Connection, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read connection file {}: {error}", path.display()))?;
        Connection::parse(&text)
            .map_err(|problem| format!("{} is not a connection file: {problem}", path.display()))
    }

    fn parse(text: &str) -> Result<Connection, String> {
        let json: Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        let text_of =
            |name: &str, default: &str| json[name].as_str().unwrap_or(default).to_string();
        let port = |name: &str| {
            json[name]
                .as_u64()
                .and_then(|port| u16::try_from(port).ok())
                .ok_or_else(|| format!("'{name}' is missing or not a port"))
        };
        let scheme = text_of("signature_scheme", "hmac-sha256");
        if scheme != "hmac-sha256" {
            return Err(format!("signature scheme '{scheme}' is not hmac-sha256"));
        }
        let transport = text_of("transport", "tcp");
        if transport != "tcp" && transport != "ipc" {
            return Err(format!("transport '{transport}' is neither tcp nor ipc"));
        }
        Ok(Connection {
            transport,
            ip: text_of("ip", "127.0.0.1"),
            shell_port: port("shell_port")?,
            iopub_port: port("iopub_port")?,
            stdin_port: port("stdin_port")?,
            control_port: port("control_port")?,
            hb_port: port("hb_port")?,
            key: text_of("key", ""),
        })
    }

    /// The address of one socket. Over ipc the "ip" is a path and ports are suffixes.
    pub fn endpoint(&self, port: u16) -> String {
        match self.transport.as_str() {
            "ipc" => format!("ipc://{}-{port}", self.ip),
            transport if self.ip.contains(':') => format!("{transport}://[{}]:{port}", self.ip),
            transport => format!("{transport}://{}:{port}", self.ip),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"transport":"tcp","ip":"127.0.0.1","shell_port":1,"iopub_port":2,
        "stdin_port":3,"control_port":4,"hb_port":5,"key":"k","signature_scheme":"hmac-sha256"}"#;

    #[test]
    fn a_good_file_gives_endpoints() {
        let connection = Connection::parse(GOOD).expect("well formed");
        assert_eq!(connection.endpoint(connection.hb_port), "tcp://127.0.0.1:5");
        assert_eq!(connection.key, "k");
    }

    #[test]
    fn bad_files_are_plain_errors() {
        for (text, word) in [
            ("", "not JSON"),
            ("{", "not JSON"),
            ("[]", "shell_port"),
            (r#"{"shell_port": 70000}"#, "shell_port"),
            (&GOOD.replace("\"tcp\"", "\"udp\""), "udp"),
            (&GOOD.replace("hmac-sha256", "md5"), "md5"),
        ] {
            let problem = Connection::parse(text).expect_err(text);
            assert!(problem.contains(word), "{problem}");
        }
    }
}
