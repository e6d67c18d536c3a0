// Package deploy holds no code: it tests what is in its folders, which is for operators: Kubernetes manifests, systemd units, container
// images, the release's packages, the Grafana dashboard and the Prometheus alert rules.
//
// # Guarantees
//
//   - Each manifest was accepted by a real kube-apiserver, in a dry run that refuses unknown fields, and its pods by the restricted Pod
//     Security Standard.
//   - Each rule and panel uses only metrics of docs/telemetry.md.
//
// # Non-guarantees
//
//   - No kubelet and no container engine took part: nothing here has run in a cluster's pod.
//
// # Assumptions
//
//   - The tests run inside the repository; those that need programs skip under -short.
package deploy
