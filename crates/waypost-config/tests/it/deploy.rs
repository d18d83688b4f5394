//! The files of `deploy/`: each object has the fields of its kind and no others, and what one names another has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PodSpec, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// All objects, each with the file that it stands in.
fn objects() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for file in fs::read_dir(deploy().join("kubernetes")).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for document in serde_yaml_ng::Deserializer::from_str(&text) {
            let value = <Value as serde::Deserialize>::deserialize(document).unwrap();
            found.push((path.file_name().unwrap().to_string_lossy().into_owned(), value));
        }
    }
    found
}

/// Reads an object as its kind; whatever the kind does not know is lost on the way, and that is noticed.
fn strictly<T: DeserializeOwned + Serialize>(place: &str, value: &Value) -> T {
    let typed: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{place}: {error}"));
    nothing_lost(place, value, &serde_json::to_value(&typed).unwrap());
    typed
}

fn nothing_lost(place: &str, written: &Value, understood: &Value) {
    match (written, understood) {
        (Value::Object(written), Value::Object(understood)) => {
            for (key, value) in written {
                let place = format!("{place}.{key}");
                let there = understood.get(key).unwrap_or_else(|| panic!("{place} is no field of its kind"));
                nothing_lost(&place, value, there);
            }
        }
        (Value::Array(written), Value::Array(understood)) => {
            assert_eq!(written.len(), understood.len(), "{place}");
            for (number, (written, understood)) in written.iter().zip(understood).enumerate() {
                nothing_lost(&format!("{place}[{number}]"), written, understood);
            }
        }
        (written, understood) => assert_eq!(written, understood, "{place}"),
    }
}

#[test]
fn a_field_that_a_kind_does_not_have_is_noticed() {
    let odd =
        serde_json::json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "dta": { "a": "b" } });
    assert!(std::panic::catch_unwind(|| strictly::<ConfigMap>("odd", &odd)).is_err());
}

#[test]
fn every_kubernetes_object_is_of_its_kind_and_names_what_is_there() {
    let mut names: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut pods: Vec<(String, PodSpec, BTreeMap<String, String>)> = Vec::new();
    let mut selectors: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    let objects = objects();
    for (file, value) in &objects {
        let kind = value["kind"].as_str().unwrap();
        let name = value["metadata"]["name"].as_str().unwrap().to_owned();
        let place = format!("{file}: {kind} {name}");
        names.entry(kind).or_default().insert(name);
        match kind {
            "ConfigMap" => {
                let map: ConfigMap = strictly(&place, value);
                let layer = waypost_config::Layer {
                    origin: waypost_config::Origin::Operator,
                    name: "config.toml".to_owned(),
                    text: map.data.unwrap()["config.toml"].clone(),
                };
                waypost_config::Config::load(&[layer], []).unwrap();
            }
            "ServiceAccount" => drop(strictly::<ServiceAccount>(&place, value)),
            "Role" => drop(strictly::<Role>(&place, value)),
            "RoleBinding" => drop(strictly::<RoleBinding>(&place, value)),
            "Service" => {
                let service: Service = strictly(&place, value);
                selectors.push((place, service.spec.unwrap().selector.unwrap()));
            }
            "PodDisruptionBudget" => {
                let budget: PodDisruptionBudget = strictly(&place, value);
                selectors.push((place, budget.spec.unwrap().selector.unwrap().match_labels.unwrap()));
            }
            "Deployment" => {
                let spec = strictly::<Deployment>(&place, value).spec.unwrap();
                let labels = spec.template.metadata.unwrap().labels.unwrap();
                selectors.push((place.clone(), spec.selector.match_labels.unwrap()));
                pods.push((place, spec.template.spec.unwrap(), labels));
            }
            other => panic!("{place}: nobody looks at objects of kind {other}"),
        }
    }
    for (place, selector) in &selectors {
        let chosen = pods
            .iter()
            .filter(|(.., labels)| selector.iter().all(|(key, value)| labels.get(key) == Some(value)));
        assert_eq!(chosen.count(), 1, "{place} chooses the pods of one Deployment");
    }
    for (place, pod, _) in &pods {
        if let Some(account) = &pod.service_account_name {
            assert!(names["ServiceAccount"].contains(account), "{place}");
        }
        let volumes: BTreeSet<&str> =
            pod.volumes.iter().flatten().map(|volume| volume.name.as_str()).collect();
        for container in &pod.containers {
            let mounts = container.volume_mounts.iter().flatten();
            assert!(
                mounts.clone().count() > 0
                    && mounts.clone().all(|mount| volumes.contains(mount.name.as_str()))
            );
            assert!(container.liveness_probe.is_some() && container.readiness_probe.is_some(), "{place}");
        }
    }
    let worker = &pods.iter().find(|(place, ..)| place.contains("waypost-worker")).unwrap().1;
    assert!(worker.termination_grace_period_seconds.unwrap() >= 600, "a worker has time to drain");
}

#[test]
fn the_services_of_compose_name_what_is_there() {
    let text = fs::read_to_string(deploy().join("compose.yaml")).unwrap();
    let mut value: serde_yaml_ng::Value = serde_yaml_ng::from_str(&text).unwrap();
    value.apply_merge().unwrap();
    let compose: Value = serde_json::to_value(value).unwrap();
    let names = |value: &Value| -> BTreeSet<String> { value.as_object().unwrap().keys().cloned().collect() };
    let (volumes, secrets, services) =
        (names(&compose["volumes"]), names(&compose["secrets"]), names(&compose["services"]));
    assert_eq!(services, ["example", "postgres", "serve", "worker"].map(str::to_owned).into());
    for (name, service) in compose["services"].as_object().unwrap() {
        for secret in service["secrets"].as_array().unwrap() {
            assert!(secrets.contains(secret.as_str().unwrap()), "{name}: {secret}");
        }
        for volume in service["volumes"].as_array().unwrap() {
            let volume = volume.as_str().unwrap().split(':').next().unwrap();
            let is_there = match volume.strip_prefix("./") {
                Some(file) => deploy().join(file).is_file(),
                None => volumes.contains(volume),
            };
            assert!(is_there, "{name}: {volume}");
        }
        for on in service.get("depends_on").map(names).unwrap_or_default() {
            assert!(services.contains(&on), "{name}: {on}");
        }
    }
    assert_eq!(compose["services"]["worker"]["deploy"]["replicas"], 2);
}

/// Renders a template of the chart, as far as ours use Helm's language: values, `quote` and `indent`.
fn rendered(template: &str, values: &Value) -> String {
    let mut parts = template.split("{{");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once("}}").expect("an expression is closed");
        let mut words = expression.split_whitespace();
        let path = words.next().unwrap().strip_prefix(".Values.").expect("only values are used");
        let value = path.split('.').fold(values, |value, key| &value[key]);
        assert!(!value.is_null(), "values.yaml lacks {path}");
        let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match words.collect::<Vec<_>>()[..] {
            [] => text.push_str(&plain),
            ["|", "quote"] => text.push_str(&Value::String(plain).to_string()),
            ["|", "indent", width] => {
                let margin = " ".repeat(width.parse().unwrap());
                text.extend(plain.lines().map(|line| format!("{margin}{line}\n")));
            }
            ref other => panic!("{other:?} is not rendered here"),
        }
        text.push_str(rest);
    }
    text
}

#[test]
fn the_chart_renders_to_the_objects_of_the_kubernetes_folder() {
    let chart = deploy().join("helm");
    let values = fs::read_to_string(chart.join("values.yaml")).unwrap();
    let values: Value = serde_yaml_ng::from_str(&values).unwrap();
    let of_chart = |file: &str, values: &Value| -> Vec<Value> {
        let text = rendered(&fs::read_to_string(chart.join("templates").join(file)).unwrap(), values);
        let documents = serde_yaml_ng::Deserializer::from_str(&text);
        documents.map(|document| <Value as serde::Deserialize>::deserialize(document).unwrap()).collect()
    };
    let mut plain: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (file, value) in objects() {
        plain.entry(file).or_default().push(value);
    }
    for (file, objects) in plain {
        let mut of_chart = of_chart(&file, &values);
        for object in of_chart.iter_mut().filter(|object| object["kind"] == "ConfigMap") {
            let text = object["data"]["config.toml"].as_str().unwrap().trim_end().to_owned() + "\n";
            object["data"]["config.toml"] = text.into();
        }
        assert_eq!(of_chart, objects, "{file}");
    }
    let mut others = values;
    others["worker"]["queue"] = "gpu: {x}".into();
    let worker = &of_chart("worker.yaml", &others)[0]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(worker["args"][2], "gpu: {x}", "a value is data");
}
