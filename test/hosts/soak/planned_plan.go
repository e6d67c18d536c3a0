//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// What a round of planned changes is about. What was stopped starts again, and the oldest member takes the
// program back: that is a planned change as well.
const (
	resignScene   scene = "sbr run is stopped"
	departScene   scene = "its member leaves"
	togetherScene scene = "several sbr run are stopped at once"
	chaseScene    scene = "others are stopped during the change"
	stormScene    scene = "four are stopped within 1.2 s"
	exodusScene   scene = "two members leave within 1 s"
)

// plannedScenes are in the order of the tables; the first ones change one thing at a time.
var plannedScenes = []scene{resignScene, departScene, togetherScene, chaseScene, stormScene, exodusScene}

// single reports whether one member changes at a time.
func (s scene) single() bool { return s == resignScene || s == departScene }

// farewell makes one host give the program away, At so long after the first one.
type farewell struct {
	Host string `json:"host"`
	At   span   `json:"at"`
	// Leaves: the whole member leaves, and comes back. Otherwise `sbr run` alone is stopped.
	Leaves bool `json:"leaves,omitempty"`
}

// ofPlanned keeps what is drawn for planned changes apart from what is drawn for the rest.
const ofPlanned = 3 << 32

// newPlannedPlan is the plan of a round in which nothing goes wrong: each other one has a lease. The first
// farewell is that of the host on which the program runs.
func newPlannedPlan(seed uint64, round int) plan {
	p := newPlan(seed, round)
	p.quiet()
	d := dice{rand.New(rand.NewPCG(seed, ofPlanned|uint64(round)))}
	s := &singlePlan{Guard: guards[(round+1)%2], Aim: true, InPeace: d.IntN(2) == 0}
	p.Single = s
	h := slices.Clone(hosts)
	d.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
	s.Farewells = []farewell{{Host: h[0]}}
	add := func(n int, within time.Duration) {
		for _, name := range h[1 : 1+n] {
			s.Farewells = append(s.Farewells, farewell{Host: name, At: span(time.Duration(d.Int64N(int64(within/time.Millisecond)+1)) * time.Millisecond)})
		}
	}
	switch x := d.IntN(100); {
	case x < 34:
		s.Scene = resignScene
	case x < 60:
		s.Scene = departScene
		s.Farewells[0].Leaves = true
	case x < 70:
		s.Scene = togetherScene
		add(1+d.IntN(3), 0)
	case x < 80:
		s.Scene = chaseScene
		add(1+d.IntN(3), 500*time.Millisecond)
	case x < 90:
		s.Scene = stormScene
		add(3, 1200*time.Millisecond)
	default:
		s.Scene = exodusScene
		add(1, time.Second)
		for i := range s.Farewells {
			s.Farewells[i].Leaves = true
		}
	}
	return p
}

func (f farewell) String() string {
	what := "stop"
	if f.Leaves {
		what = "leave"
	}
	return fmt.Sprintf("%s %s at %v", what, f.Host, f.At)
}

// farewells are those of a plan, on one line.
func (s *singlePlan) farewells() string {
	texts := make([]string, len(s.Farewells))
	for i, f := range s.Farewells {
		texts[i] = f.String()
	}
	return strings.Join(texts, " + ")
}
