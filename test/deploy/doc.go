// Package deploy tests what is in the folder deploy/, which is for operators: Kubernetes manifests, systemd
// units, container images, the release's packages, the Grafana dashboard and the Prometheus alert rules. It
// builds the programs that check and pack them: kustomize, promtool, goreleaser and syft, each in the version
// that a module under tools/ pins (package buildcache).
//
// # Guarantees
//
//   - Each manifest was accepted by a real kube-apiserver, in a dry run that refuses unknown fields, and its
//     pods by the restricted Pod Security Standard.
//   - Each rule and panel uses only metrics of docs/metrics.md.
//   - The programs never touch the product's module.
//
// # Non-guarantees
//
//   - No kubelet and no container engine took part: nothing here has run in a cluster's pod.
//   - Speed of the first build: with nothing compiled it takes minutes. "make deploy" builds the programs
//     before the tests.
//
// # Assumptions
//
//   - The tests run inside the repository; those that need programs skip under -short.
//   - The go command is on PATH, and can download modules or has them.
package deploy
