//! The server, database, user and security of a connection, from the URL and the variables that libpq reads. Does not
//! connect. Every text for users comes from here, without the password.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::{Result, StoreError};

/// Seconds until a server that does not answer counts as unreachable.
pub(super) const CONNECT_SECONDS_MAX: u64 = 10;
/// Seconds for which sent data may stay unacknowledged by the other machine.
const UNCONFIRMED_SECONDS_MAX: u64 = 15;
/// Seconds of silence after which a keepalive probe is sent.
const SILENCE_SECONDS_MAX: u64 = 15;
/// The socket directory of Debian's server.
const SOCKETS: &str = "/var/run/postgresql";

/// Which parts of the server's certificate are checked, after libpq's `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Nothing: an active attacker is not detected.
    Nothing,
    /// That a trusted authority signed it.
    Authority,
    /// The same, and that it is issued for this host.
    AuthorityAndHost,
}

/// The address of a server and how to connect to it.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) check: Check,
    /// A file with the trusted authorities; `None` for those of the system.
    pub(super) roots: Option<PathBuf>,
    /// The URL without its password.
    pub(super) location: String,
    /// Why the file of passwords could not be read.
    pub(super) unread_pass_file: Option<String>,
}

/// Returns an environment variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Address {
    /// Parses a URL. Missing parts come from the environment.
    pub(super) fn parse(url: &str) -> Result<Self> {
        Self::parse_with(url, &variable)
    }

    fn parse_with(url: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let location = without_password(url);
        let wrong = |what: String| StoreError::Unreachable(format!("{location}: {what}"));
        let (start, parameters) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut pass_file) = (None, None, None);
        let mut rest = Vec::new();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "sslmode" => mode = Some(decoded(value)),
                "sslrootcert" => roots = Some(decoded(value)),
                "passfile" => pass_file = Some(decoded(value)),
                "sslcert" | "sslkey" | "sslcrl" | "service" | "gssencmode" | "krbsrvname" => {
                    return Err(wrong(format!(
                        "{name} is not supported here; docs/stores.md lists what the URL may say"
                    )));
                }
                _ => rest.push(parameter),
            }
        }
        let plain = if rest.is_empty() { start.to_owned() } else { format!("{start}?{}", rest.join("&")) };
        let mut unread_pass_file = None;
        let mut config: Config = plain.parse().map_err(|error| wrong(reason(&error)))?;
        let mode = mode.or_else(|| variable("PGSSLMODE")).unwrap_or_else(|| "prefer".to_owned());
        let roots = roots.or_else(|| variable("PGSSLROOTCERT")).map(PathBuf::from);
        let (ssl, check) = match mode.as_str() {
            "disable" => (SslMode::Disable, Check::Nothing),
            "allow" | "prefer" => (SslMode::Prefer, Check::Nothing),
            // With authorities given, libpq verifies them even if the mode does not require it.
            "require" if roots.is_some() => (SslMode::Require, Check::Authority),
            "require" => (SslMode::Require, Check::Nothing),
            "verify-ca" => (SslMode::Require, Check::Authority),
            "verify-full" => (SslMode::Require, Check::AuthorityAndHost),
            other => {
                return Err(wrong(format!(
                    "{other:?} is not an sslmode: write disable, prefer, require, verify-ca or verify-full"
                )));
            }
        };
        config.ssl_mode(ssl);
        fill_in(&mut config, variable).map_err(wrong)?;
        if config.get_password().is_none() {
            let file = pass_file.map(PathBuf::from).or_else(|| pass_file_of(variable));
            match file.map_or(Ok(None), |file| password_in(&file, &config)) {
                Ok(Some(password)) => {
                    config.password(password);
                }
                Ok(None) => {}
                Err(error) => unread_pass_file = Some(error),
            }
        }
        let roots = roots.filter(|roots| roots.as_os_str() != "system");
        Ok(Self { config, check, roots, location, unread_pass_file })
    }

    /// Describes the server, for messages.
    pub(super) fn server(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => self.config.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default(),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let database = self.config.get_dbname().unwrap_or_default();
        let user = self.config.get_user().unwrap_or_default();
        format!("PostgreSQL at {host}:{port} (database {database}, user {user})")
    }
}

/// Returns the driver's error about a URL. It names options, never their values.
fn reason(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Fills in what the URL leaves open: from libpq's variables, then from libpq's defaults.
fn fill_in(config: &mut Config, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let host = variable("PGHOST").unwrap_or_else(|| {
            if Path::new(SOCKETS).is_dir() { SOCKETS.to_owned() } else { "localhost".to_owned() }
        });
        config.host(host);
    }
    if config.get_ports().is_empty()
        && let Some(port) = variable("PGPORT")
    {
        config.port(port.parse().map_err(|_| format!("PGPORT is {port:?}, which is not a port number"))?);
    }
    if config.get_user().is_none() {
        let user = variable("PGUSER").or_else(|| variable("USER")).or_else(|| variable("LOGNAME"));
        config.user(user.ok_or("no user is named: write postgres://USER@HOST/DATABASE, or set PGUSER")?);
    }
    if config.get_dbname().is_none_or(str::is_empty) {
        let user = config.get_user().unwrap_or_default().to_owned();
        config.dbname(variable("PGDATABASE").unwrap_or(user));
    }
    if config.get_password().is_none()
        && let Some(password) = variable("PGPASSWORD")
    {
        config.password(password);
    }
    if config.get_options().is_none()
        && let Some(options) = variable("PGOPTIONS")
    {
        config.options(options);
    }
    if config.get_application_name().is_none() {
        config.application_name(variable("PGAPPNAME").unwrap_or_else(|| "waypost".to_owned()));
    }
    if config.get_connect_timeout().is_none() {
        let seconds = variable("PGCONNECT_TIMEOUT").and_then(|text| text.parse().ok());
        config.connect_timeout(Duration::from_secs(seconds.unwrap_or(CONNECT_SECONDS_MAX).max(1)));
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(UNCONFIRMED_SECONDS_MAX));
    }
    if config.get_keepalives() {
        let silence = Duration::from_secs(SILENCE_SECONDS_MAX);
        config.keepalives_idle(config.get_keepalives_idle().min(silence));
    }
    Ok(())
}

/// Returns the file in which libpq looks for passwords.
fn pass_file_of(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = variable("PGPASSFILE").map(PathBuf::from);
    named.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".pgpass")))
}

/// Returns the password for this server from a file in libpq's format: `host:port:database:user:password` per line. The
/// error names a file that exists and cannot be read.
fn password_in(file: &Path, config: &Config) -> Result<Option<String>, String> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(password_of(&text, config)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} could not be read: {error}", file.display())),
    }
}

fn password_of(text: &str, config: &Config) -> Option<String> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(_)) => "localhost".to_owned(),
        None => config.get_hostaddrs().first()?.to_string(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let wanted = [
        host.as_str(),
        &port,
        config.get_dbname().unwrap_or_default(),
        config.get_user().unwrap_or_default(),
    ];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let fits = |(field, wanted): (&String, &&str)| field == "*" || field == wanted;
        (fields.len() == 5 && fields.iter().zip(&wanted).all(fits)).then(|| fields[4].clone())
    })
}

/// Splits a line into fields; `\` escapes the next character. The last field may contain colons.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        let last = fields.len() - 1;
        match sign {
            ':' if last < 4 => fields.push(String::new()),
            '\\' => fields[last].extend(signs.next()),
            sign => fields[last].push(sign),
        }
    }
    fields
}

/// Decodes percent encoding: `%41` is `A`.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Returns a location that may be shown: without the password of a URL, in its authority or its parameters. Store
/// locations of other kinds are returned unchanged.
pub fn without_password(location: &str) -> String {
    let Some((scheme, rest)) = location.split_once("://") else { return location.to_owned() };
    let (start, parameters) = rest.split_once('?').map_or((rest, None), |(start, rest)| (start, Some(rest)));
    // The last `@`: a password that was not encoded may contain others.
    let start = match start.rsplit_once('@') {
        Some((who, place)) => format!("{}@{place}", who.split(':').next().unwrap_or_default()),
        None => start.to_owned(),
    };
    let secret = |parameter: &&str| !parameter.to_ascii_lowercase().starts_with("password=");
    let kept: Option<Vec<&str>> = parameters.map(|all| all.split('&').filter(secret).collect());
    match kept.filter(|kept| !kept.is_empty()) {
        Some(kept) => format!("{scheme}://{start}?{}", kept.join("&")),
        None => format!("{scheme}://{start}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str, variables: &[(&str, &str)]) -> Result<Address> {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Address::parse_with(url, &find)
    }

    #[test]
    fn a_password_is_shown_nowhere() {
        let secrets = [
            "postgres://ada:s3cret@db.example:5433/plans?sslmode=disable",
            "postgres://ada:s3cret@/plans",
            "postgres://ada@db.example/plans?password=s3cret&sslmode=disable",
            "postgres://ada:p@s3cret@db.example/plans",
            "postgress://ada:s3cret@db.example/plans",
            "postgresql://:s3cret@db.example/plans?PASSWORD=s3cret",
        ];
        for url in secrets {
            let shown = without_password(url);
            assert!(!shown.contains("s3cret") && shown.contains("plans"), "{shown}");
        }
        let address = parse(secrets[0], &[]).unwrap();
        assert_eq!(address.location, "postgres://ada@db.example:5433/plans?sslmode=disable");
        assert_eq!(address.server(), "PostgreSQL at db.example:5433 (database plans, user ada)");
        assert_eq!(address.config.get_password(), Some(b"s3cret".as_slice()));
        let wrong = parse("postgres://ada:s3cret@db/plans?colour=red", &[]).err().unwrap().to_string();
        assert!(wrong.contains("colour") && !wrong.contains("s3cret"), "{wrong}");
        assert_eq!(without_password("sqlite:a/b.db"), "sqlite:a/b.db");
    }

    #[test]
    fn what_the_url_leaves_open_comes_from_the_variables_of_libpq() {
        let variables = [
            ("PGHOST", "db.example"),
            ("PGPORT", "6000"),
            ("PGUSER", "ada"),
            ("PGPASSWORD", "s3cret"),
            ("PGDATABASE", "plans"),
            ("PGSSLMODE", "verify-full"),
            ("PGOPTIONS", "-c search_path=team"),
        ];
        let address = parse("postgres://", &variables).unwrap();
        assert_eq!(address.server(), "PostgreSQL at db.example:6000 (database plans, user ada)");
        assert_eq!(address.check, Check::AuthorityAndHost);
        assert_eq!(address.config.get_password(), Some(b"s3cret".as_slice()));
        assert_eq!(address.config.get_options(), Some("-c search_path=team"));
        let own = parse("postgres://bob:other@here:1/mine?sslmode=disable", &variables).unwrap();
        assert_eq!(own.server(), "PostgreSQL at here:1 (database mine, user bob)");
        assert_eq!(own.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(own.config.get_password(), Some(b"other".as_slice()));
        assert_eq!(parse("postgres://ada@h", &[]).unwrap().config.get_dbname(), Some("ada"));
    }

    #[test]
    fn words_that_are_not_known_are_refused() {
        for (url, what) in [
            ("postgres://a@h/d?sslmode=full", "not an sslmode"),
            ("postgres://a@h/d?sslcert=x.pem", "sslcert is not supported"),
            ("postgres://a@h:port/d", "invalid value for option `port`"),
        ] {
            let wrong = parse(url, &[]).err().unwrap().to_string();
            assert!(wrong.contains(what), "{wrong}");
        }
    }

    #[test]
    fn a_file_of_passwords_is_read_as_libpq_reads_it() {
        let file = std::env::temp_dir().join(format!("waypost-pgpass-{}", std::process::id()));
        std::fs::write(&file, "# who\nother:*:*:ada:no\nh:5432:d\\:b:ada:a:b\\\\c\n*:*:*:*:last\n").unwrap();
        let passwords = file.display().to_string();
        let password = |url: &str| {
            let address = parse(url, &[("PGPASSFILE", &passwords)]).unwrap();
            String::from_utf8(address.config.get_password().unwrap().to_vec()).unwrap()
        };
        assert_eq!(password("postgres://ada@h/d:b"), "a:b\\c");
        assert_eq!(password("postgres://ada@other/x"), "no");
        assert_eq!(password("postgres://bob@h/d"), "last");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(
            parse("postgres://bob@h/d", &[("PGPASSFILE", &passwords)]).unwrap().unread_pass_file,
            None
        );
        // A folder cannot be read as a file, whoever tries.
        let folder = std::env::temp_dir().display().to_string();
        let unread =
            parse("postgres://bob@h/d", &[("PGPASSFILE", &folder)]).unwrap().unread_pass_file.unwrap();
        assert!(unread.starts_with(&format!("{folder} could not be read")), "{unread}");
    }
}
