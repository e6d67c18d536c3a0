// Package costs measures what a lease costs on a store, beside the locks that people would pick there: round
// trips, latency, watchers, take-over, idle writes. Each store's benchmarks give it their server.
package costs
