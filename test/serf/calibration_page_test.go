package serf_test

const pageHead = "<!-- Written by the code: SBR_CALIBRATE=1 go test -C test ./serf -run TestCalibration -timeout 60m -update. Changes by hand are lost. -->\n" + `
# How like Serf the simulator's failure detector is

What a simulated partition shows is worth as much as its failure detector is like Serf's. This page compares the two: real Serf nodes with
stock settings in virtual time, and the model, are cut in two again and again, and each time it is noted how long it took

- until the **first** member across the cut was found to have failed by anybody on a side, and
- until **all** of them were by everybody there.

Times are seconds after the cut, as the tenth, the fifth and the ninth of ten cuts (10th percentile / median / 90th percentile).

## Method

- Real: Serf and memberlist as released, on a network inside the process with a delay of 1 to 2 ms. Nodes start at random moments, and
  the cut comes at a random moment, so nothing is in step. Without probes it counts when Serf reports the failure; with probes, when the
  resolver calls the member unreachable, whether it was Serf or its own probes that found out.
- Model: nothing in it is fitted to these numbers. It plays what memberlist does after a cut, probe by probe and rumour by rumour, with the
  settings of the profile (probe interval, suspicion, Lifeguard's score, retransmissions, exchanges of full states); own probes likewise.
- Shapes are written *larger side*-*smaller side*, after the profile of Serf's settings. *Probes*: with the resolver's own, as configured by default.

## Tolerance

A cut is *outside* when the model does not put it where it was, give or take a factor of 1.2 and half a second. The column says for which
share of the cuts that is so: the distance between the two distributions (Kolmogorov-Smirnov) after the model's was stretched and shrunk by
that much. 10 % are allowed, and what chance adds: with so few runs the share would be larger by accident than a bound that the test
computes only once in 100,000 comparisons. ` + "`TestCalibration`" + ` holds each number to it.

What the model leaves out: broadcasts that ride on pings; a network that loses packets; what happens when a partition changes while it is being
noticed, where each change is played on its own.

## Results

| Shape | Cuts | Larger side, first: Serf | model | outside | Larger side, all: Serf | model | outside | Smaller side, first: Serf | model | outside | Smaller side, all: Serf | model | outside |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
`
