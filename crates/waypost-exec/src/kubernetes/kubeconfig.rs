//! Finds the cluster as `kubectl` does: by a named file, by `KUBECONFIG`, by `~/.kube/config`, or from inside one of its
//! pods. Sends nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde::Deserialize;
use serde_json::{Map, Value};
use waypost_config::path_inside;
use waypost_net::TlsOptions;

/// Where the cluster puts what its pods need to speak to it.
const POD_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A cluster, and how this side proves itself there.
pub(super) struct ClusterAddress {
    /// The URL of the API server, without a slash at its end.
    pub(super) server: String,
    pub(super) namespace: String,
    pub(super) tls: TlsOptions,
    pub(super) credentials: Credentials,
}

pub(super) enum Credentials {
    None,
    /// The value of the header.
    Header(String),
    /// A file that the cluster writes anew from time to time.
    TokenFile(PathBuf),
    Plugin(Plugin),
}

/// A program that prints credentials.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Plugin {
    pub(super) api_version: String,
    pub(super) command: String,
    pub(super) args: Vec<String>,
    env: Vec<Variable>,
    provide_cluster_info: bool,
    /// The cluster, as the program is told if it asks for it.
    #[serde(skip)]
    cluster: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Variable {
    name: String,
    value: String,
}

impl Plugin {
    /// Returns the variables that the program gets in addition to its own.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let mut spec = serde_json::json!({ "interactive": false });
        if self.provide_cluster_info {
            spec["cluster"] = self.cluster.clone();
        }
        let told =
            serde_json::json!({ "apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec });
        let own = self.env.iter().map(|variable| (variable.name.clone(), variable.value.clone()));
        own.chain([("KUBERNETES_EXEC_INFO".to_owned(), told.to_string())]).collect()
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Kubeconfig {
    current_context: String,
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    #[serde(default)]
    cluster: ClusterEntry,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    #[serde(default)]
    user: UserEntry,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    #[serde(default)]
    context: ContextEntry,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct ClusterEntry {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    insecure_skip_tls_verify: bool,
    tls_server_name: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct UserEntry {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    username: Option<String>,
    password: Option<String>,
    exec: Option<Plugin>,
    auth_provider: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContextEntry {
    cluster: String,
    user: String,
    namespace: Option<String>,
}

/// Finds the cluster. `file` and `context` are what the executor names; `workspace` is where agents write.
pub(super) fn find(
    file: Option<&Path>,
    context: Option<&str>,
    variables: &BTreeMap<String, String>,
    workspace: &Path,
) -> Result<ClusterAddress, String> {
    let variable = |name: &str| variables.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let files: Vec<PathBuf> = match (file, variable("KUBECONFIG"), variable("HOME")) {
        (Some(file), _, _) => vec![file.to_owned()],
        (None, Some(list), _) => list.split(':').map(PathBuf::from).filter(|path| path.exists()).collect(),
        (None, None, Some(home)) => {
            let usual = Path::new(home).join(".kube/config");
            if usual.exists() { vec![usual] } else { Vec::new() }
        }
        (None, None, None) => Vec::new(),
    };
    match (files.is_empty(), context) {
        (false, _) => from_files(&files, context, workspace),
        (true, Some(context)) => Err(format!("there is no kubeconfig with the context {context:?}")),
        (true, None) => match (variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT")) {
            (Some(host), Some(port)) => from_pod(Path::new(POD_FOLDER), host, port),
            _ => Err("there is no kubeconfig, and this is not a pod of a cluster".to_owned()),
        },
    }
}

fn from_pod(folder: &Path, host: &str, port: &str) -> Result<ClusterAddress, String> {
    let read = |name: &str| read(&folder.join(name));
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    Ok(ClusterAddress {
        server: format!("https://{host}:{port}"),
        namespace: String::from_utf8_lossy(&read("namespace")?).trim().to_owned(),
        tls: TlsOptions { authorities: Some(read("ca.crt")?), ..TlsOptions::default() },
        credentials: Credentials::TokenFile(folder.join("token")),
    })
}

fn from_files(files: &[PathBuf], context: Option<&str>, workspace: &Path) -> Result<ClusterAddress, String> {
    let mut read_files = Vec::new();
    for file in files {
        let text = read(file)?;
        let bad = |error: String| format!("{}: {error}", file.display());
        let text = String::from_utf8(text).map_err(|_| bad("it is not UTF-8".to_owned()))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        read_files.push((folder, file, parse(&text).map_err(bad)?));
    }
    // What the first file says counts.
    let said = read_files.iter().map(|(_, _, found)| found.current_context.as_str());
    let context = context.or_else(|| said.clone().find(|name| !name.is_empty()));
    let context = context.ok_or("the kubeconfig has no current context")?;
    let chosen = read_files.iter().flat_map(|(_, _, found)| &found.contexts).find(|one| one.name == context);
    let chosen = &chosen.ok_or_else(|| format!("the kubeconfig has no context {context:?}"))?.context;
    let clusters = read_files
        .iter()
        .flat_map(|(folder, file, found)| found.clusters.iter().map(move |one| (folder, file, one)));
    let (folder, file, NamedCluster { cluster, .. }) = clusters
        .clone()
        .find(|(_, _, one)| one.name == chosen.cluster)
        .ok_or_else(|| format!("the kubeconfig has no cluster {:?}", chosen.cluster))?;
    if cluster.proxy_url.as_ref().is_some_and(|url| !url.is_empty()) {
        return Err(format!("cluster {:?} has a proxy-url, which is not supported", chosen.cluster));
    }
    if cluster.server.is_empty() {
        return Err(format!("cluster {:?} has no server", chosen.cluster));
    }
    let authorities = content(
        (folder, file, workspace),
        cluster.certificate_authority_data.as_deref(),
        cluster.certificate_authority.as_deref(),
    );
    let mut tls = TlsOptions {
        authorities: authorities?,
        identity: None,
        server_name: cluster.tls_server_name.clone().filter(|name| !name.is_empty()),
        accepts_any: cluster.insecure_skip_tls_verify,
    };
    let users = read_files
        .iter()
        .flat_map(|(folder, file, found)| found.users.iter().map(move |one| (folder, file, one)));
    let credentials = match users.clone().find(|(_, _, one)| one.name == chosen.user) {
        None if chosen.user.is_empty() => Credentials::None,
        None => return Err(format!("the kubeconfig has no user {:?}", chosen.user)),
        Some((folder, file, NamedUser { user, .. })) => {
            let place = (*folder, file.as_path(), workspace);
            let chain =
                content(place, user.client_certificate_data.as_deref(), user.client_certificate.as_deref())?;
            let key = content(place, user.client_key_data.as_deref(), user.client_key.as_deref())?;
            tls.identity = chain.zip(key);
            let of_cluster = serde_json::json!({
                "server": cluster.server,
                "certificate-authority-data": tls.authorities.as_ref().map(|pem| BASE64.encode(pem)),
                "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
                "tls-server-name": cluster.tls_server_name,
            });
            credentials(user, folder, file, workspace, of_cluster)?
        }
    };
    Ok(ClusterAddress {
        server: cluster.server.trim_end_matches('/').to_owned(),
        namespace: chosen
            .namespace
            .clone()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "default".to_owned()),
        tls,
        credentials,
    })
}

fn credentials(
    user: &UserEntry,
    folder: &Path,
    file: &Path,
    workspace: &Path,
    cluster: Value,
) -> Result<Credentials, String> {
    if let Some(token) = user.token.as_ref().filter(|token| !token.is_empty()) {
        return Ok(Credentials::Header(format!("Bearer {token}")));
    }
    if let Some(path) = &user.token_file {
        return Ok(Credentials::TokenFile(named(&folder.join(path), file, workspace)?));
    }
    if let (Some(name), Some(password)) = (&user.username, &user.password) {
        return Ok(Credentials::Header(format!("Basic {}", BASE64.encode(format!("{name}:{password}")))));
    }
    if let Some(plugin) = &user.exec {
        if is_inside(file, workspace) {
            return Err(format!(
                "{} runs the program {:?} and lies in the workspace: keep it outside, for example in ~/.kube/config",
                file.display(),
                plugin.command
            ));
        }
        let has_path = plugin.command.contains('/');
        let command = if has_path {
            folder.join(&plugin.command).display().to_string()
        } else {
            plugin.command.clone()
        };
        return Ok(Credentials::Plugin(Plugin { command, cluster, ..plugin.clone() }));
    }
    match &user.auth_provider {
        None => Ok(Credentials::None),
        Some(_) => {
            Err("the user has an auth-provider, which kubectl has dropped too: use exec instead".to_owned())
        }
    }
}

/// Whether agents can write a file, or the link that leads to it.
fn is_inside(file: &Path, workspace: &Path) -> bool {
    let leads_there = |root: PathBuf| fs::canonicalize(file).is_ok_and(|file| file.starts_with(root));
    file.starts_with(workspace) || fs::canonicalize(workspace).is_ok_and(leads_there)
}

/// Returns the path of a file that a kubeconfig names. One that agents can write names no others than they can read.
fn named(path: &Path, kubeconfig: &Path, workspace: &Path) -> Result<PathBuf, String> {
    if !is_inside(kubeconfig, workspace) {
        return Ok(path.to_owned());
    }
    path_inside(workspace, path).map_err(|error| {
        format!("{} lies in the workspace and names {}: {error}", kubeconfig.display(), path.display())
    })
}

/// Returns what stands in the file itself, or in the one that it names.
fn content(
    (folder, kubeconfig, workspace): (&Path, &Path, &Path),
    data: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<Vec<u8>>, String> {
    match (data.filter(|data| !data.is_empty()), file) {
        (Some(data), _) => decoded(data).map(Some),
        (None, Some(file)) => read(&named(&folder.join(file), kubeconfig, workspace)?).map(Some),
        (None, None) => Ok(None),
    }
}

fn decoded(data: &str) -> Result<Vec<u8>, String> {
    let compact: String = data.split_whitespace().collect();
    BASE64.decode(compact).map_err(|error| format!("the kubeconfig has data that is not Base64: {error}"))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn parse(text: &str) -> Result<Kubeconfig, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| error.to_string())?;
    let document = documents.into_iter().next().map_or(Value::Null, json);
    match document {
        Value::Null => Ok(Kubeconfig::default()),
        document @ (Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_)) => serde_json::from_value(document).map_err(|error| error.to_string()),
    }
}

/// Returns a document as JSON. A key without a value counts as left out.
fn json(yaml: Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Boolean(value)) => value.into(),
        Yaml::Value(Scalar::Integer(value)) => value.into(),
        Yaml::Value(Scalar::FloatingPoint(value)) => value.into_inner().into(),
        Yaml::Value(Scalar::String(value)) => value.into_owned().into(),
        Yaml::Sequence(items) => items.into_iter().map(json).collect(),
        Yaml::Mapping(entries) => {
            let entries = entries.into_iter().filter_map(|(key, value)| match (json(key), json(value)) {
                (_, Value::Null) => None,
                (Value::String(key), value) => Some((key, value)),
                (key, value) => Some((key.to_string(), value)),
            });
            Value::Object(entries.collect::<Map<String, Value>>())
        }
        Yaml::Tagged(_, inner) => json(*inner),
        Yaml::Value(Scalar::Null) | Yaml::Representation(..) | Yaml::Alias(_) | Yaml::BadValue => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files(PathBuf);

    impl Files {
        fn new(name: &str) -> Self {
            let folder =
                std::env::temp_dir().join(format!("waypost-kubeconfig-{name}-{}", std::process::id()));
            fs::create_dir_all(folder.join("work")).unwrap();
            Self(folder)
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, text).unwrap();
            path
        }

        fn find(&self, context: Option<&str>, files: &[&Path]) -> Result<ClusterAddress, String> {
            let list = std::env::join_paths(files).unwrap().into_string().unwrap();
            let variables = BTreeMap::from([("KUBECONFIG".to_owned(), list)]);
            find(None, context, &variables, &self.0.join("work"))
        }
    }

    impl Drop for Files {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    const MAIN: &str = r#"
apiVersion: v1
kind: Config
current-context: prod # the usual one
preferences: {}
clusters:
- name: prod
  cluster: {server: "https://prod.example.org:6443/k8s/", certificate-authority-data: UEVNCg==, tls-server-name: api}
- name: dev
  cluster:
    server: https://dev.example.org
    certificate-authority: ca.crt
    insecure-skip-tls-verify: true
users:
- name: robot
  user:
    token: >-
      abc
- name: eve
  user: {username: eve, password: "1 2"}
- name: plugged
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/token
      args: [get, --cluster, prod]
      env: [{name: PROFILE, value: main}]
      provideClusterInfo: true
contexts:
- name: prod
  context: {cluster: prod, user: robot, namespace: crew}
- name: dev
  context: {cluster: dev, user: eve}
- name: plug
  context: {cluster: prod, user: plugged}
- name: lost
  context: {cluster: nowhere, user: robot}
"#;

    #[test]
    fn a_kubeconfig_says_where_the_cluster_is_and_who_we_are() {
        let files = Files::new("main");
        let main = files.write("config", MAIN);
        files.write("ca.crt", "from a file");
        let found = files.find(None, &[&main]).unwrap();
        assert_eq!(
            (found.server.as_str(), found.namespace.as_str()),
            ("https://prod.example.org:6443/k8s", "crew")
        );
        assert_eq!(found.tls.authorities.as_deref(), Some(&b"PEM\n"[..]));
        assert_eq!(found.tls.server_name.as_deref(), Some("api"));
        assert!(matches!(&found.credentials, Credentials::Header(value) if value == "Bearer abc"));
        let found = files.find(Some("dev"), &[&main]).unwrap();
        assert_eq!((found.namespace.as_str(), found.tls.accepts_any), ("default", true));
        assert_eq!(found.tls.authorities.as_deref(), Some(&b"from a file"[..]));
        assert!(matches!(&found.credentials, Credentials::Header(value) if value == "Basic ZXZlOjEgMg=="));
        let Credentials::Plugin(plugin) = files.find(Some("plug"), &[&main]).unwrap().credentials else {
            panic!()
        };
        assert_eq!(plugin.command, files.0.join("./bin/token").display().to_string());
        assert_eq!(plugin.args, ["get", "--cluster", "prod"]);
        let variables = plugin.variables();
        assert_eq!(variables[0], ("PROFILE".to_owned(), "main".to_owned()));
        let told: Value = serde_json::from_str(&variables[1].1).unwrap();
        assert_eq!(told["spec"]["cluster"]["server"], "https://prod.example.org:6443/k8s/");
        assert_eq!(told["spec"]["cluster"]["certificate-authority-data"], "UEVNCg==");
    }

    #[test]
    fn of_several_files_the_first_counts() {
        let files = Files::new("several");
        let first = files.write(
            "first",
            "current-context: dev\nclusters:\nusers:\n- {name: robot, user: {token: first}}\n",
        );
        let second = files.write("second", MAIN);
        let found = files.find(Some("prod"), &[&first, &files.0.join("none"), &second]).unwrap();
        assert!(matches!(&found.credentials, Credentials::Header(value) if value == "Bearer first"));
        files.write("ca.crt", "x");
        assert_eq!(files.find(None, &[&first, &second]).unwrap().server, "https://dev.example.org");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let files = Files::new("wrong");
        let main = files.write("config", MAIN);
        let error = |context: &str| files.find(Some(context), &[&main]).map(drop).unwrap_err();
        assert_eq!(error("other"), "the kubeconfig has no context \"other\"");
        assert_eq!(error("lost"), "the kubeconfig has no cluster \"nowhere\"");
        assert!(error("dev").ends_with("ca.crt: No such file or directory (os error 2)"), "{}", error("dev"));
        let bad = files.write("bad", "clusters: [");
        assert!(files.find(None, &[&bad]).map(drop).unwrap_err().contains("bad: "));
        let empty = files.write("empty", "");
        assert_eq!(
            files.find(None, &[&empty]).map(drop).unwrap_err(),
            "the kubeconfig has no current context"
        );
        // Whoever writes in the workspace does not choose a program.
        let inside =
            files.write("work/config", &MAIN.replace("current-context: prod", "current-context: plug"));
        let refused = files.find(None, &[&inside]).map(drop).unwrap_err();
        assert!(refused.contains("lies in the workspace"), "{refused}");
        let nothing = find(None, None, &BTreeMap::new(), &files.0).map(drop).unwrap_err();
        assert_eq!(nothing, "there is no kubeconfig, and this is not a pod of a cluster");
    }

    #[test]
    fn a_pod_finds_its_own_cluster() {
        let files = Files::new("pod");
        for (name, text) in [("namespace", "crew\n"), ("ca.crt", "PEM"), ("token", "t")] {
            files.write(name, text);
        }
        let found = from_pod(&files.0, "fd00::1", "443").unwrap();
        assert_eq!((found.server.as_str(), found.namespace.as_str()), ("https://[fd00::1]:443", "crew"));
        assert!(matches!(found.credentials, Credentials::TokenFile(path) if path == files.0.join("token")));
    }
}
